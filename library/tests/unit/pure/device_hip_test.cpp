// The HIP device on the fake HIP (fake_hip/), which runs on the fake CUDA driver: how memory is recognised
// and shared, links, copies, the CPU's access, and why there is no device.
#include <gtest/gtest.h>

#include <cstring>

#include "base/status.h"
#include "device/cuda/pointer.h"
#include "device/hip/hip_device.h"
#include "fake_gpu.h"
#include "fake_hip/fake_hip.h"

namespace pw::hip {
namespace {

using cuda::CUdeviceptr;

class HipDeviceTest : public pw::testing::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();  // driver_ is CUDA's beneath HIP
    fake_hip_ = dlopen(kFakeHip.c_str(), RTLD_NOW);
    ASSERT_NE(fake_hip_, nullptr) << dlerror();
    steer<fake_hip::SetLargeBar>("fake_hip_set_large_bar")(1);
    steer<fake_hip::SetNumbered>("fake_hip_set_numbered")(1);
    std::string why;
    hip_ = load_driver(kFakeHip, why);
    ASSERT_NE(hip_, nullptr) << why;
    hip_pins_ = std::make_unique<cuda::Pins>(*hip_);
    for (int i = 0; i < 2; ++i) gpu_[i] = make_hip(i);
  }
  template <typename Function>
  Function* steer(const char* name) {
    return reinterpret_cast<Function*>(dlsym(fake_hip_, name));
  }
  std::unique_ptr<HipDevice> make_hip(int ordinal) {
    return std::make_unique<HipDevice>(
        *hip_, ordinal, *hip_pins_, [](int, const auto&) { return std::string("an image"); },
        facts_of(ordinal));
  }
  std::string log() { return reinterpret_cast<fake_cuda::TakeLog*>(dlsym(library_, "fake_cuda_take_log"))(); }
  /// Memory as a program makes it, not Peerway.
  std::byte* malloc(uint64_t bytes, int gpu = 0) {
    cuda::CUcontext context = nullptr;
    driver_->cuDevicePrimaryCtxRetain(&context, gpu);
    const cuda::Current current(*driver_, context);
    CUdeviceptr address = 0;
    driver_->cuMemAlloc(&address, bytes);
    return reinterpret_cast<std::byte*>(address);
  }

  void* fake_hip_ = nullptr;
  std::unique_ptr<const cuda::Driver> hip_;
  std::unique_ptr<cuda::Pins> hip_pins_;
  std::unique_ptr<HipDevice> gpu_[2];
};

TEST_F(HipDeviceTest, MemoryOfTheProgramIsRecognisedAndSharedByIpc) {
  std::byte* address = malloc(4096, 1);
  const Allocation allocation = gpu_[1]->find(address + 100, 64).value();
  EXPECT_EQ(allocation.device, (DeviceId{PW_HIP, 1}));
  EXPECT_EQ(allocation.handle, cuda::kIpc);
  EXPECT_EQ(allocation.base, address);
  EXPECT_EQ(allocation.bytes, 4096u);
  EXPECT_EQ(allocation.id, gpu_[1]->allocation_id(address + 200));
  EXPECT_FALSE(gpu_[0]->find(address, 1).has_value()) << "it is of the other GPU";
  EXPECT_FALSE(gpu_[0]->find(this, 1).has_value()) << "HIP does not know it";
  EXPECT_EQ(gpu_[0]->allocation_id(this), 0u);
}

TEST_F(HipDeviceTest, AllocationsOfMoreThan4GiBAreOne) {
  constexpr uint64_t kBytes = (uint64_t{5} << 30) + 4096;  // HIP's attribute for the size has 32 bits
  std::byte* address = malloc(kBytes);
  EXPECT_EQ(gpu_[0]->find(address + (uint64_t{5} << 30), 64).value().bytes, kBytes);
}

TEST_F(HipDeviceTest, WhatHasNoIpcHandleSaysSo) {
  cuda::CUmemoryPool pool = nullptr;
  CUdeviceptr from_pool = 0, managed = 0;
  cuda::CUmemPoolProps wanted{};
  wanted.handleTypes = cuda::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  driver_->cuMemPoolCreate(&pool, &wanted);
  driver_->cuMemAllocFromPoolAsync(&from_pool, 4096, pool, nullptr);
  steer<cuda::CUresult(CUdeviceptr*, size_t, unsigned)>("hipMallocManaged")(&managed, 4096, 1);
  const auto why = [this](CUdeviceptr address) {
    const Allocation allocation = gpu_[0]->find(reinterpret_cast<void*>(address), 64).value();
    EXPECT_EQ(allocation.handle, Handle::none);
    return allocation.why_none;
  };
  EXPECT_NE(why(from_pool).find("without a HIP IPC handle"), std::string::npos) << why(from_pool);
  EXPECT_NE(why(managed).find("hipMallocManaged"), std::string::npos) << why(managed);
}

TEST_F(HipDeviceTest, OutOfMemoryIsSaidWithTheNameOfTheDevice) {
  fail("cuMemAlloc", cuda::CUDA_ERROR_OUT_OF_MEMORY);
  try {
    gpu_[1]->allocate(1000);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_NO_MEMORY);
    EXPECT_NE(std::string(error.what()).find("1000 bytes on hip:1: hipError2"), std::string::npos)
        << error.what();
  }
}

TEST_F(HipDeviceTest, LinksAreNamedByTheirKind) {
  const Allocation allocation = gpu_[0]->allocate(4096);
  Export exported = gpu_[0]->export_allocation(allocation, allocation.base);
  std::string why;
  EXPECT_TRUE(gpu_[1]->reaches(exported, why)) << why;
  EXPECT_EQ(gpu_[1]->link(exported), "xgmi");
  EXPECT_FALSE(gpu_[1]->carries_lines(exported)) << "AMD promises no more than 8 bytes";
  exported.process = 1;
  EXPECT_EQ(gpu_[0]->link(exported), "same") << "processes share a GPU without taking turns";
  exported.device_uuid.fill(std::byte{0xee});
  EXPECT_FALSE(gpu_[1]->reaches(exported, why));
  EXPECT_NE(why.find("HIP_VISIBLE_DEVICES"), std::string::npos) << why;
}

TEST_F(HipDeviceTest, GpusWithoutNumbersAreToldApartByTheirPlace) {
  EXPECT_NE(gpu_[0]->uuid(), gpu_[1]->uuid());
  const auto numbered = gpu_[0]->uuid();
  steer<fake_hip::SetNumbered>("fake_hip_set_numbered")(0);
  EXPECT_NE(make_hip(0)->uuid(), make_hip(1)->uuid());
  EXPECT_NE(make_hip(0)->uuid(), numbered);
}

TEST_F(HipDeviceTest, CopiesOfAllDimensionsAreMadeByTheEngine) {
  const auto queue = gpu_[1]->make_queue();
  std::byte* to = gpu_[1]->allocate(65536).base;
  std::byte* from = gpu_[1]->allocate(65536).base;
  for (int i = 0; i < 65536; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
  Copy copy{to, from, {}};
  Shape& shape = copy.layout.shape;
  shape.block_bytes = 48;
  const std::string expected[] = {"1d 48\n", "3d 48 x 20 x 1\n", "3d 48 x 20 x 5\n"};
  for (uint32_t dims = 0; dims < 3; ++dims) {
    shape.dims = dims;
    if (dims == 1) shape.count = {20}, copy.layout.to = {64}, copy.layout.from = {128};
    if (dims == 2) shape.count = {5, 20}, copy.layout.to = {2048, 64}, copy.layout.from = {3840, 128};
    std::memset(to, 0, 65536);
    log();
    ASSERT_EQ(queue->copy(copy, CopyBy::engine), PW_OK) << last_error_message();
    EXPECT_EQ(log(), expected[dims]);
    const uint64_t last_to = dims == 0 ? 0 : (dims == 2 ? 4 * 2048 : 0) + 19 * 64;
    const uint64_t last_from = dims == 0 ? 0 : (dims == 2 ? 4 * 3840 : 0) + 19 * 128;
    EXPECT_EQ(std::memcmp(to + last_to, from + last_from, 48), 0) << dims;
  }
}

TEST_F(HipDeviceTest, AWriteFollowsACopyByTheKernel) {
  const auto queue = gpu_[0]->make_queue();
  static uint64_t word;
  word = 0;
  gpu_[0]->pin(&word, sizeof word);
  Copy copy{gpu_[0]->allocate(4096).base, gpu_[0]->allocate(4096).base, {}};
  copy.layout.shape.block_bytes = 1024;
  log();
  EXPECT_EQ(queue->copy_and_write(copy, CopyBy::kernel, &word, 7), PW_OK) << last_error_message();
  EXPECT_EQ(log(), "kernel 16 x 64 and write\n");
  EXPECT_EQ(word, 7u);
  EXPECT_EQ(queue->copy_and_write(copy, CopyBy::engine, &word, 8), PW_OK) << last_error_message();
  EXPECT_EQ(word, 8u);
  gpu_[0]->unpin(&word);
  EXPECT_EQ(queue->write(&word, 9), PW_DEVICE);
  EXPECT_NE(std::string(last_error_message()).find("hip:0: writing a signal"), std::string::npos);
}

TEST_F(HipDeviceTest, StreamsAndTheCurrentGpuAreKeptApart) {
  auto* const get = steer<cuda::CUresult(int*)>("hipGetDevice");
  void* stream = gpu_[1]->make_stream();
  int current = -1;
  get(&current);
  EXPECT_EQ(current, 0) << "the program's current GPU is as it was";
  std::string why;
  EXPECT_TRUE(gpu_[1]->owns_stream(stream, why)) << why;
  EXPECT_FALSE(gpu_[0]->owns_stream(stream, why));
  EXPECT_NE(why.find("HIP context"), std::string::npos) << why;
  gpu_[1]->free_stream(stream);
}

TEST_F(HipDeviceTest, TheCpuUsesTheAddressesOfTheGpuWhereTheBarIsLarge) {
  const Allocation allocation = gpu_[0]->allocate(4096);
  uint32_t* flush = steer<fake_hip::FlushWord>("fake_hip_flush_word")();
  *flush = 0;
  const auto mapping = gpu_[0]->map_for_cpu(allocation);
  EXPECT_EQ(mapping->address(), allocation.base);
  const std::byte out[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  mapping->store(mapping->address() + 10, out, sizeof out);
  EXPECT_EQ(std::memcmp(allocation.base + 10, out, sizeof out), 0);
  EXPECT_EQ(*flush, 1u) << "the GPU sees the stores only once they are flushed";

  steer<fake_hip::SetLargeBar>("fake_hip_set_large_bar")(0);
  try {
    make_hip(0)->map_for_cpu(allocation);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Resizable BAR"), std::string::npos) << error.what();
  }
}

TEST_F(HipDeviceTest, ADmaBufIsOfTheAllocation) {
  const Allocation allocation = gpu_[0]->allocate(4096);
  const int descriptor = gpu_[0]->dma_buf(allocation);
  ASSERT_GE(descriptor, 0);
  allocation.base[5] = std::byte{99};
  std::byte byte{};
  EXPECT_EQ(pread(descriptor, &byte, 1, 5), 1);
  EXPECT_EQ(byte, std::byte{99});
  close(descriptor);
}

TEST_F(HipDeviceTest, WhyThereIsNoDeviceIsSaid) {
  std::string why;
  EXPECT_EQ(load_driver("/nowhere/libamdhip64.so", why), nullptr);
  EXPECT_NE(why.find("hip_library names"), std::string::npos) << why;
  EXPECT_EQ(load_driver(kFakeCuda, why), nullptr);
  EXPECT_NE(why.find("is it HIP?"), std::string::npos) << why;
  steer<fake_hip::SetVersion>("fake_hip_set_version")(50721234);
  EXPECT_EQ(load_driver(kFakeHip, why), nullptr);
  steer<fake_hip::SetVersion>("fake_hip_set_version")(60342134);
  EXPECT_NE(why.find("is of ROCm 5.7; Peerway needs 6.0"), std::string::npos) << why;
  fail("cuInit", hipErrorNoDevice);
  EXPECT_EQ(load_driver(kFakeHip, why), nullptr);
  EXPECT_NE(why.find("hipInit gives hipError100"), std::string::npos) << why;
}

TEST_F(HipDeviceTest, LaunchesAreCapturedIntoGraphs) {
  const cuda::Kernels kernels(*hip_, 90, [](int, const auto&) { return std::string("an image"); });
  Copy copy{gpu_[0]->allocate(64).base, gpu_[0]->allocate(64).base, {}};
  copy.layout.shape.block_bytes = 64;
  auto* stream = static_cast<cuda::CUstream>(gpu_[0]->make_stream());
  cuda::CUgraph graph = nullptr;
  cuda::CUgraphExec instance = nullptr;
  ASSERT_EQ(hip_->cuStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
  ASSERT_EQ(kernels.launch(cuda::make_launch(copy, 4), stream), hipSuccess);
  ASSERT_EQ(hip_->cuStreamEndCapture(stream, &graph), hipSuccess);
  ASSERT_EQ(hip_->cuGraphInstantiate(&instance, graph, 0), hipSuccess);
  std::memset(const_cast<std::byte*>(copy.from), 7, 64);
  std::memset(copy.to, 0, 64);
  ASSERT_EQ(hip_->cuGraphLaunch(instance, stream), hipSuccess);
  EXPECT_EQ(copy.to[63], std::byte{7});
  hip_->cuGraphExecDestroy(instance);
  hip_->cuGraphDestroy(graph);
  gpu_[0]->free_stream(stream);
}

}  // namespace
}  // namespace pw::hip
