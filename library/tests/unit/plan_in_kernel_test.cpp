// Handles of one-sided operations in kernels and signals in device memory, on the driver's double: its memory
// is the CPU's, so the device functions run here as they are.
#include <gtest/gtest.h>

#include <cstring>

#include "context_ranks.h"
#include "device/host/host.h"
#include "fake_gpu.h"
#include "peerway/device.cuh"
#include "plan/kernel/in_kernel.h"
#include "plan/plan.h"

namespace pw {
namespace {

using peerway::device::Result;
using peerway::device::Thread;
using peerway::device::Word;
using testing::range;
using testing::Ranks;

using testing::kSecond;

class InKernel : public testing::FakeGpuTest {
 protected:
  void SetUp() override {
    FakeGpuTest::SetUp();
    if (!HasFatalFailure()) ranks_ = std::make_unique<Ranks>(2);
  }
  void TearDown() override { ranks_.reset(); }  // before the device

  /// The status of the error that the body throws.
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

  /// One start of a plan of rank 1 that only notifies.
  void notify_by_plan(Remote& signal, uint64_t by) {
    Plan plan((*ranks_)[1], *gpu_);
    plan.operations().notify({&signal, by});
    plan.prepare(true);
    ASSERT_EQ(plan.start(), PW_OK) << last_error_message();
    ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
  }

  std::unique_ptr<Ranks> ranks_;
};

TEST_F(InKernel, ASignalInDeviceMemoryIsNotifiedAndAwaitedByPlans) {
  Signal arrived((*ranks_)[0], 1, *gpu_);
  Plan waits((*ranks_)[0], *gpu_);
  waits.operations().wait(arrived, 3);
  waits.prepare(true);
  notify_by_plan(*ranks_->import(1, arrived), 3);
  EXPECT_EQ(arrived.value(), 3u);
  EXPECT_EQ(arrived.wait(3, 20 * kSecond), PW_OK) << last_error_message();
  EXPECT_EQ(arrived.wait(4, kSecond / 100), PW_TIMEOUT);
  ASSERT_EQ(waits.start(), PW_OK);
  ASSERT_EQ(waits.finish(20 * kSecond), PW_OK) << last_error_message();
  notify_by_plan(*ranks_->import(1, arrived), 2);
  EXPECT_EQ(arrived.value(), 5u) << "a later import goes on from where the first was";
}

TEST_F(InKernel, OneWordForEachOfAnyRanks) {
  Signal any((*ranks_)[0], PW_ANY_RANK, *gpu_);
  const auto from_0 = ranks_->import(0, any), from_1 = ranks_->import(1, any);
  notify_by_plan(*from_1, 7);
  KernelNotifications own((*ranks_)[0], *from_0, *gpu_);
  notify(Thread{}, own.handle(), 10);
  EXPECT_EQ(any.value(), 17u);
  KernelWaits waits((*ranks_)[0], any, *gpu_);
  EXPECT_EQ(wait(Thread{}, waits.handle(kSecond), 17), Result::ok);
}

TEST_F(InKernel, TheHostNotifiesNoSignalInDeviceMemory) {
  Signal arrived((*ranks_)[0], 1, *gpu_);
  const auto remote = ranks_->import(1, arrived);
  EXPECT_EQ((*ranks_)[1].notify({remote.get(), 1}), PW_UNSUPPORTED);
  const auto from = (*ranks_)[1].allocate({PW_HOST, 0}, 8), to = (*ranks_)[0].allocate({PW_HOST, 0}, 8);
  const auto target = ranks_->import(1, 0, *to);
  const Notification notified{remote.get(), 1};
  EXPECT_EQ((*ranks_)[1].transfer_range({Op::put, target.get(), from.get(), 0, 0, 8}, notified),
            PW_UNSUPPORTED);
  Plan plan((*ranks_)[1], host_device());
  plan.operations().notify(notified);
  EXPECT_EQ(status_of([&] { plan.prepare(true); }), PW_UNSUPPORTED);
  Plan host_waits((*ranks_)[0], host_device());
  host_waits.operations().wait(arrived, 1);
  EXPECT_EQ(status_of([&] { host_waits.prepare(true); }), PW_UNSUPPORTED);
  EXPECT_EQ(arrived.value(), 0u);
}

TEST_F(InKernel, KernelsPutNotifyAndWait) {
  const auto memory = (*ranks_)[0].allocate({PW_HOST, 0}, 100);
  const auto target = ranks_->import(1, 0, *memory);
  const pw_remote_handle to = handle_of(*target, *gpu_);
  Signal signal((*ranks_)[0], 1);
  const auto remote = ranks_->import(1, signal);
  KernelWaits waits((*ranks_)[0], signal, *gpu_);
  ASSERT_EQ((*ranks_)[1].notify({remote.get(), 4}), PW_OK);
  {
    KernelNotifications notifications((*ranks_)[1], *remote, *gpu_);
    EXPECT_EQ(put(Thread{}, to, 90, "ten bytes", 10, notifications.handle(), 2), Result::ok);
    EXPECT_EQ(put(Thread{}, to, 91, "ten bytes", 10), Result::out_of_range) << "past the end";
    EXPECT_EQ(wait(Thread{}, waits.handle(kSecond), 6), Result::ok);
    EXPECT_STREQ(reinterpret_cast<const char*>(memory->address()) + 90, "ten bytes");
    EXPECT_EQ((*ranks_)[1].notify({remote.get(), 1}), PW_INVALID_ARGUMENT) << "the kernels own it";
    EXPECT_EQ(status_of([&] { KernelNotifications((*ranks_)[1], *remote, *gpu_); }), PW_INVALID_ARGUMENT);
    EXPECT_EQ(signal.value(), 6u);
  }
  EXPECT_EQ((*ranks_)[1].notify({remote.get(), 1}), PW_OK) << last_error_message();
  EXPECT_EQ(signal.value(), 7u) << "the host goes on from where the kernels were";
}

TEST_F(InKernel, AHandleThatCannotBeMadeLeavesTheSignalToOthers) {
  Signal signal((*ranks_)[0], 1);
  const auto remote = ranks_->import(1, signal);
  fail("cuStreamWriteValue64", cuda::CUDA_ERROR_OUT_OF_MEMORY);  // the total of its notifications
  EXPECT_NE(status_of([&] { KernelNotifications((*ranks_)[1], *remote, *gpu_); }), PW_OK);
  EXPECT_EQ((*ranks_)[1].notify({remote.get(), 1}), PW_OK) << last_error_message();
  EXPECT_EQ(signal.value(), 1u);
}

TEST_F(InKernel, WaitsOfKernelsEnd) {
  Signal signal((*ranks_)[0], 1, *gpu_);
  KernelWaits waits((*ranks_)[0], signal, *gpu_);
  EXPECT_EQ(wait(Thread{}, waits.handle(kSecond / 100), 9), Result::timeout);
  EXPECT_EQ(waits.status(), PW_TIMEOUT);
  EXPECT_NE(std::string(last_error_message()).find("to 9"), std::string::npos) << last_error_message();
  const pw_signal_handle again = waits.handle(PW_FOREVER);
  EXPECT_EQ(waits.status(), PW_OK) << "a new handle begins anew";
  (*ranks_)[0].close();
  EXPECT_EQ(wait(Thread{}, again, 9), Result::cancelled);
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
  plan.operations().notify({remote.get(), 1});
  plan.operations().wait(signal, 1);
  plan.prepare(true);
  void* stream = gpu_->make_stream();
  ASSERT_EQ(plan.enqueue(stream, PlanPart::start), PW_OK) << last_error_message();
  EXPECT_EQ(plan.enqueue(stream, PlanPart::start), PW_INVALID_ARGUMENT) << "no kernel can have finished it";
  pw_plan_handle handle{};
  ASSERT_EQ(plan.handle(handle), PW_OK);
  EXPECT_EQ(finish(Thread{}, handle), Result::ok);
  ASSERT_EQ(plan.enqueue(stream, PlanPart::start), PW_OK) << last_error_message();
  EXPECT_EQ(finish(Thread{}, handle), Result::ok);
  EXPECT_EQ(signal.value(), 2u);
  gpu_->free_stream(stream);
}

// Handles for device code of another header version do nothing.
TEST_F(InKernel, HandlesOfAnotherVersionAreRefused) {
  const auto memory = (*ranks_)[0].allocate({PW_HOST, 0}, 100);
  const auto target = ranks_->import(1, 0, *memory);
  pw_remote_handle to = handle_of(*target, *gpu_);
  Signal signal((*ranks_)[0], 1);
  const auto remote = ranks_->import(1, signal);
  KernelWaits waits((*ranks_)[0], signal, *gpu_);
  KernelNotifications notifications((*ranks_)[1], *remote, *gpu_);
  pw_notify_handle notify_by = notifications.handle();
  pw_signal_handle wait_by = waits.handle(kSecond);
  to.version = notify_by.version = wait_by.version = PW_HANDLE_VERSION + 1;
  EXPECT_EQ(put(Thread{}, to, 0, "ten bytes", 10), Result::other_version);
  EXPECT_EQ(memory->address()[0], std::byte{0});
  EXPECT_EQ(notify(Thread{}, notify_by, 3), Result::other_version);
  EXPECT_EQ(signal.value(), 0u);
  EXPECT_EQ(wait(Thread{}, wait_by, 0), Result::other_version);
  pw_plan_handle plan{};
  EXPECT_EQ(start(Thread{}, plan), Result::other_version);
  EXPECT_EQ(finish(Thread{}, plan), Result::other_version);
  pw_fifo_handle fifo{};
  Word number = 0;
  EXPECT_EQ(post(Thread{}, fifo, {}, &number), Result::other_version);
  EXPECT_EQ(wait(Thread{}, fifo, 1), Result::other_version);
}

// A lane says which of its rules a part breaks.
TEST_F(InKernel, LanesSayWhyTheyRefuse) {
  alignas(16) unsigned char slots[2 * 64]{}, data[64]{};
  Word stop = 0, report = 0, polled = 0;
  const pw_lane_handle lane{PW_HANDLE_VERSION, 8, slots, 64, 1, {&stop, &report, &polled, kSecond / 100}};
  EXPECT_EQ(send(Thread{}, lane, 1, data, 32), Result::ok);
  EXPECT_EQ(send(Thread{}, lane, 1, data, 40), Result::out_of_range) << "a slot has 32 bytes of data";
  EXPECT_EQ(send(Thread{}, lane, 1, data, 8, 32), Result::out_of_range);
  EXPECT_EQ(send(Thread{}, lane, 1, data, ~0ull & ~7ull, 0), Result::out_of_range);
  EXPECT_EQ(send(Thread{}, lane, 1, data + 4, 8), Result::misaligned);
  EXPECT_EQ(send(Thread{}, lane, 1, data, 12), Result::misaligned);
  EXPECT_EQ(receive(Thread{}, lane, 1, data, 8, 4), Result::misaligned);
  EXPECT_EQ(receive(Thread{}, lane, 1, data, 32), Result::ok);
  EXPECT_EQ(receive(Thread{}, lane, 2, data, 32), Result::timeout);
  stop = 1;
  EXPECT_EQ(receive(Thread{}, lane, 2, data, 32), Result::cancelled);
}

// A GPU that polls host memory from every warp at once stands still for as long as that takes.
TEST_F(InKernel, OneWaitPollsHostMemoryForAll) {
  namespace detail = peerway::device::detail;
  Word stop = 1, report = 0, polled = detail::clock_ns() + 100 * kSecond;
  const pw_guard guard{&stop, &report, &polled, kSecond};
  const auto goes_on = [&guard](Word epoch) {
    detail::Deadline deadline(guard, 1, epoch);
    for (unsigned n = 0; n < 4 * detail::kPollsBetweenChecks; ++n)
      if (!deadline.keep_waiting()) return false;
    return true;
  };
  EXPECT_TRUE(goes_on(1)) << "another wait has polled host memory just now";
  EXPECT_EQ(report, 0u);
  polled = 0;
  EXPECT_FALSE(goes_on(2)) << "the poll is due";
  EXPECT_EQ(report, detail::report_of(detail::kCancelledByHost, 1, 2));
  stop = 0;
  EXPECT_FALSE(goes_on(3)) << "what one has found out all others know, without host memory";
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
