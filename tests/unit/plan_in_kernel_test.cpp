// Handles of one-sided operations in kernels and signals in device memory, on the driver's double: its memory
// is the processor's, so the device functions run here as they are.
#include <gtest/gtest.h>

#include <cstring>

#include "context_ranks.h"
#include "device/host/host.h"
#include "fake_gpu.h"
#include "peerway/device.cuh"
#include "plan/in_kernel.h"
#include "plan/plan.h"

namespace pw {
namespace {

using peerway::device::Thread;
using testing::Ranks;
using testing::run;

using testing::kSecond;

class InKernel : public testing::FakeGpuTest {
 protected:
  void SetUp() override {
    FakeGpuTest::SetUp();
    if (!HasFatalFailure()) ranks_ = std::make_unique<Ranks>(2);
  }
  void TearDown() override { ranks_.reset(); }  // before the device

  /// What the body throws, as its status.
  template <typename Body>
  static pw_status status_of(Body&& body) {
    try {
      body();
      return PW_OK;
    } catch (const Error& error) {
      EXPECT_GT(std::string(error.what()).size(), 20u);
      return error.status();
    }
  }

  /// One start of a plan of rank 1 that only raises.
  void raise_by_plan(Remote& signal, uint64_t by) {
    Plan plan((*ranks_)[1], *gpu_);
    plan.raise({&signal, by});
    plan.prepare(true);
    ASSERT_EQ(plan.start(), PW_OK) << last_error_message();
    ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
  }

  std::unique_ptr<Ranks> ranks_;
};

TEST_F(InKernel, ASignalInDeviceMemoryIsRaisedAndAwaitedByPlans) {
  Signal arrived((*ranks_)[0], 1, *gpu_);
  Plan waits((*ranks_)[0], *gpu_);
  waits.wait(arrived, 3);
  waits.prepare(true);
  raise_by_plan(*ranks_->import(1, arrived), 3);
  EXPECT_EQ(arrived.value(), 3u);
  EXPECT_EQ(arrived.wait(3, 20 * kSecond), PW_OK) << last_error_message();
  EXPECT_EQ(arrived.wait(4, kSecond / 100), PW_TIMEOUT);
  ASSERT_EQ(waits.start(), PW_OK);
  ASSERT_EQ(waits.finish(20 * kSecond), PW_OK) << last_error_message();
  raise_by_plan(*ranks_->import(1, arrived), 2);
  EXPECT_EQ(arrived.value(), 5u) << "a later import goes on from where the first was";
}

TEST_F(InKernel, OneWordForEachOfAnyRanks) {
  Signal any((*ranks_)[0], PW_ANY_RANK, *gpu_);
  const auto from_0 = ranks_->import(0, any), from_1 = ranks_->import(1, any);
  raise_by_plan(*from_1, 7);
  KernelRaises own((*ranks_)[0], *from_0, *gpu_);
  raise(Thread{}, own.handle(), 10);
  EXPECT_EQ(any.value(), 17u);
  KernelWaits waits((*ranks_)[0], any, *gpu_);
  EXPECT_TRUE(wait(Thread{}, waits.handle(kSecond), 17));
}

TEST_F(InKernel, TheHostRaisesNoSignalInDeviceMemory) {
  Signal arrived((*ranks_)[0], 1, *gpu_);
  const auto remote = ranks_->import(1, arrived);
  EXPECT_EQ((*ranks_)[1].raise({remote.get(), 1}), PW_UNSUPPORTED);
  const auto from = (*ranks_)[1].allocate({PW_HOST, 0}, 8), to = (*ranks_)[0].allocate({PW_HOST, 0}, 8);
  const auto target = ranks_->import(1, 0, *to);
  const Raise raised{remote.get(), 1};
  EXPECT_EQ((*ranks_)[1].move({Op::put, target.get(), from.get(), 0, 0, 8}, &raised), PW_UNSUPPORTED);
  Plan plan((*ranks_)[1], host_device());
  plan.raise(raised);
  EXPECT_EQ(status_of([&] { plan.prepare(true); }), PW_UNSUPPORTED);
  Plan host_waits((*ranks_)[0], host_device());
  host_waits.wait(arrived, 1);
  EXPECT_EQ(status_of([&] { host_waits.prepare(true); }), PW_UNSUPPORTED);
  EXPECT_EQ(arrived.value(), 0u);
}

TEST_F(InKernel, KernelsPutRaiseAndWait) {
  const auto memory = (*ranks_)[0].allocate({PW_HOST, 0}, 100);
  const auto target = ranks_->import(1, 0, *memory);
  const pw_remote_handle to = handle_of(*target, *gpu_);
  Signal signal((*ranks_)[0], 1);
  const auto remote = ranks_->import(1, signal);
  KernelWaits waits((*ranks_)[0], signal, *gpu_);
  ASSERT_EQ((*ranks_)[1].raise({remote.get(), 4}), PW_OK);
  {
    KernelRaises raises((*ranks_)[1], *remote, *gpu_);
    EXPECT_TRUE(put(Thread{}, to, 90, "ten bytes", 10, raises.handle(), 2));
    EXPECT_FALSE(put(Thread{}, to, 91, "ten bytes", 10)) << "past the end";
    EXPECT_TRUE(wait(Thread{}, waits.handle(kSecond), 6));
    EXPECT_STREQ(reinterpret_cast<const char*>(memory->address()) + 90, "ten bytes");
    EXPECT_EQ((*ranks_)[1].raise({remote.get(), 1}), PW_INVALID_ARGUMENT) << "the kernels own it";
    EXPECT_EQ(status_of([&] { KernelRaises((*ranks_)[1], *remote, *gpu_); }), PW_INVALID_ARGUMENT);
    EXPECT_EQ(signal.value(), 6u);
  }
  EXPECT_EQ((*ranks_)[1].raise({remote.get(), 1}), PW_OK) << last_error_message();
  EXPECT_EQ(signal.value(), 7u) << "the host goes on from where the kernels were";
}

TEST_F(InKernel, WaitsOfKernelsEnd) {
  Signal signal((*ranks_)[0], 1, *gpu_);
  KernelWaits waits((*ranks_)[0], signal, *gpu_);
  EXPECT_FALSE(wait(Thread{}, waits.handle(kSecond / 100), 9));
  EXPECT_EQ(waits.status(), PW_TIMEOUT);
  EXPECT_NE(std::string(last_error_message()).find("to 9"), std::string::npos) << last_error_message();
  const pw_signal_handle again = waits.handle(PW_FOREVER);
  EXPECT_EQ(waits.status(), PW_OK) << "a new handle begins anew";
  (*ranks_)[0].close();
  EXPECT_FALSE(wait(Thread{}, again, 9));
  EXPECT_EQ(waits.status(), PW_CLOSED);
}

TEST_F(InKernel, HandlesAreForDevicesThatReachTheirMemory) {
  Signal signal((*ranks_)[0], 1), on_gpu((*ranks_)[0], 1, *gpu_);
  EXPECT_EQ(status_of([&] { KernelWaits((*ranks_)[0], signal, host_device()); }), PW_UNSUPPORTED);
  const auto other = make_gpu(1);
  EXPECT_EQ(status_of([&] { KernelWaits((*ranks_)[0], on_gpu, *other); }), PW_UNSUPPORTED);
  const auto memory = (*ranks_)[0].allocate({PW_HOST, 0}, 8);
  const auto remote = ranks_->import(1, 0, *memory);
  EXPECT_EQ(status_of([&] { handle_of(*remote, host_device()); }), PW_UNSUPPORTED);
}

TEST_F(InKernel, WhatAStreamStartsAKernelFinishes) {
  Signal signal((*ranks_)[0], 0, *gpu_);
  const auto remote = ranks_->import(0, signal);
  Plan plan((*ranks_)[0], *gpu_);
  plan.raise({remote.get(), 1});
  plan.wait(signal, 1);
  plan.prepare(true);
  void* stream = gpu_->make_stream();
  ASSERT_EQ(plan.enqueue(stream, Part::start), PW_OK) << last_error_message();
  EXPECT_EQ(plan.enqueue(stream, Part::start), PW_INVALID_ARGUMENT) << "no kernel can have finished it";
  pw_plan_handle handle{};
  ASSERT_EQ(plan.handle(handle), PW_OK);
  EXPECT_TRUE(finish(Thread{}, handle));
  ASSERT_EQ(plan.enqueue(stream, Part::start), PW_OK) << last_error_message();
  EXPECT_TRUE(finish(Thread{}, handle));
  EXPECT_EQ(signal.value(), 2u);
  gpu_->free_stream(stream);
}

TEST_F(InKernel, WordsAreZeroAndUsedAgainLate) {
  Registry registry((*ranks_)[0].control());
  WordPool pool(*gpu_, registry);
  const DeviceWords first = pool.take(3);
  std::memset(first.address(), 0xff, 24);
  pool.give(first);
  const DeviceWords second = pool.take(3);
  EXPECT_NE(second.address(), first.address());
  const DeviceWords many = pool.take(20000);
  EXPECT_NE(many.region, first.region) << "more than a chunk has";
  for (int n = 0; n < 511; ++n)
    for (uint32_t w = 0; w < 3; ++w) EXPECT_EQ(pool.take(3).address()[w], 0u);
}

}  // namespace
}  // namespace pw
