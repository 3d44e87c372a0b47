// The CUDA device on the fake driver (fake_cuda/): which handle memory is shared by and why none, copies,
// pins, messages.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/status.h"
#include "device/cuda/pointer.h"
#include "fake_gpu.h"

namespace pw::cuda {
namespace {

class CudaDeviceTest : public testing::FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    if (!HasFatalFailure()) make();
  }
  void make() {
    for (int i = 0; i < 2; ++i) gpu_[i] = make_gpu(i);
  }
  void set_attribute(int attribute, int value) {
    reinterpret_cast<fake_cuda::SetAttribute*>(dlsym(library_, "fake_cuda_set_attribute"))(attribute, value);
  }
  std::string log() { return reinterpret_cast<fake_cuda::TakeLog*>(dlsym(library_, "fake_cuda_take_log"))(); }

  // Memory as a program makes it, not Peerway.
  CUdeviceptr malloc(uint64_t bytes, int gpu = 0) {
    const Current current(*driver_, context(gpu));
    CUdeviceptr address = 0;
    driver_->cuMemAlloc(&address, bytes);
    return address;
  }
  CUcontext context(int gpu) {
    CUcontext opened = nullptr;
    driver_->cuDevicePrimaryCtxRetain(&opened, gpu);
    return opened;
  }
  CUdeviceptr from_pool(int handles) {
    CUmemPoolProps wanted{};
    wanted.handleTypes = handles;
    CUmemoryPool pool = nullptr;
    driver_->cuMemPoolCreate(&pool, &wanted);
    CUdeviceptr address = 0;
    driver_->cuMemAllocFromPoolAsync(&address, 4096, pool, nullptr);
    return address;
  }
  CUdeviceptr chunks(int count, int handles) {
    CUdeviceptr address = 0;
    driver_->cuMemAddressReserve(&address, 8 * 65536, 0, 0, 0);
    CUmemAllocationProp wanted{};
    wanted.requestedHandleTypes = handles;
    for (int i = 0; i < count; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      driver_->cuMemCreate(&handle, 65536, &wanted, 0);
      driver_->cuMemMap(address + static_cast<uint64_t>(i) * 65536, 65536, 0, handle, 0);
    }
    return address;
  }
  Allocation find(CUdeviceptr address, uint64_t bytes = 64) {
    return gpu_[0]->find(reinterpret_cast<void*>(address), bytes).value();
  }
  static std::byte* at(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

  std::unique_ptr<CudaDevice> gpu_[2];
};

TEST_F(CudaDeviceTest, CudaMallocIsSharedByIpc) {
  const CUdeviceptr address = malloc(4096);
  const Allocation allocation = find(address + 100);
  EXPECT_EQ(allocation.handle, cuda::kIpc);
  EXPECT_EQ(allocation.base, at(address));
  EXPECT_EQ(allocation.bytes, 4096u);
  EXPECT_EQ(allocation.id, gpu_[0]->allocation_id(at(address + 200)));
  EXPECT_FALSE(gpu_[1]->find(at(address), 1).has_value());
}

TEST_F(CudaDeviceTest, WhereIpcIsRefusedTheReasonIsKept) {
  fail("cuIpcGetMemHandle", 801);
  const Allocation allocation = find(malloc(4096));
  EXPECT_EQ(allocation.handle, Handle::none);
  EXPECT_NE(allocation.why_none.find("CUDA_ERROR_801"), std::string::npos) << allocation.why_none;
}

TEST_F(CudaDeviceTest, AllocateIsSharedByIpc) {
  const Allocation allocation = gpu_[0]->allocate(1000);
  EXPECT_EQ(allocation.handle, cuda::kIpc);
  EXPECT_EQ(allocation.bytes, 1000u);
  gpu_[0]->release(allocation);
  EXPECT_FALSE(gpu_[0]->find(allocation.base, 1).has_value());
}

TEST_F(CudaDeviceTest, AllocateWithoutIpcIsSharedByDescriptor) {
  fail("cuIpcGetMemHandle", 801);
  const Allocation allocation = gpu_[0]->allocate(1000);
  EXPECT_EQ(allocation.handle, cuda::kFd);
  EXPECT_EQ(allocation.bytes, 65536u);
  gpu_[0]->release(allocation);
  EXPECT_FALSE(gpu_[0]->find(allocation.base, 1).has_value());
}

TEST_F(CudaDeviceTest, AllocateWithoutFabricWhereItIsRefused) {
  set_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 1);
  make();
  fail("cuMemCreate", 800);
  EXPECT_EQ(gpu_[0]->allocate(1000).handle, cuda::kFd);
}

TEST_F(CudaDeviceTest, OutOfMemoryIsSaidWithTheSize) {
  fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  try {
    gpu_[0]->allocate(1000);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_NO_MEMORY);
    EXPECT_NE(std::string(error.what()).find("1000 bytes on cuda:0"), std::string::npos) << error.what();
  }
}

TEST_F(CudaDeviceTest, AFailedMapLeavesNothing) {
  fail("cuIpcGetMemHandle", 801);
  fail("cuMemSetAccess", 1);
  EXPECT_THROW(gpu_[0]->allocate(1000), Error);
  EXPECT_EQ(gpu_[0]->allocate(1000).handle, cuda::kFd);
}

TEST_F(CudaDeviceTest, PoolsNeedAHandleType) {
  EXPECT_EQ(find(from_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)).handle, cuda::kPool);
  const Allocation without = find(from_pool(CU_MEM_HANDLE_TYPE_NONE));
  EXPECT_EQ(without.handle, Handle::none);
  EXPECT_NE(without.why_none.find("cudaMallocAsync"), std::string::npos) << without.why_none;
}

TEST_F(CudaDeviceTest, ManagedMemoryIsNotShared) {
  CUdeviceptr address = 0;
  {
    const Current current(*driver_, context(0));
    driver_->cuMemAllocManaged(&address, 4096, 1);
  }
  EXPECT_EQ(find(address).handle, Handle::none);
  EXPECT_NE(find(address).why_none.find("cudaMallocManaged"), std::string::npos);
}

TEST_F(CudaDeviceTest, VmmIsSharedByDescriptors) {
  const CUdeviceptr three = chunks(3, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  const Allocation second = find(three + 65536 + 5, 100);
  EXPECT_EQ(second.handle, cuda::kFd);
  EXPECT_EQ(second.base, at(three + 65536));
  EXPECT_EQ(second.bytes, 65536u);
  EXPECT_EQ(find(chunks(1, CU_MEM_HANDLE_TYPE_NONE)).handle, Handle::none);
  EXPECT_EQ(find(chunks(1, CU_MEM_HANDLE_TYPE_FABRIC)).handle, cuda::kFabric);
}

TEST_F(CudaDeviceTest, VmmSideBySideIsOneAllocation) {
  const CUdeviceptr three = chunks(3, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  const Allocation across = find(three + 65000, 1000);
  EXPECT_EQ(across.handle, cuda::kSegments);
  EXPECT_EQ(across.base, at(three));
  EXPECT_EQ(across.bytes, 2 * 65536u);
  EXPECT_EQ(across.id, gpu_[0]->allocation_id(at(three + 65000)));
  EXPECT_EQ(find(three, 3 * 65536).bytes, 3 * 65536u);
  EXPECT_EQ(find(three, 3 * 65536 + 1).bytes, 3 * 65536u) << "the last mapping ends before the range does";
  EXPECT_EQ(find(three, 9 * 65536).bytes, 3 * 65536u) << "the reserved addresses do, too";
  for (const int handles : {CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_FABRIC}) {
    const Allocation refused = find(chunks(2, handles), 2 * 65536);
    EXPECT_EQ(refused.handle, Handle::none);
    EXPECT_NE(refused.why_none.find("ask for CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"), std::string::npos)
        << refused.why_none;
  }
}

TEST_F(CudaDeviceTest, TheIdChangesWithTheMemory) {
  const Allocation first = gpu_[0]->allocate(1000);
  gpu_[0]->release(first);
  EXPECT_EQ(gpu_[0]->allocation_id(first.base), 0u);
  EXPECT_NE(gpu_[0]->allocate(1000).id, first.id);
}

// The other process of the test: maps what was exported and adds one to each byte.
int add_one(CudaDevice& device, const Export& exported) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      const auto mapping = device.import(exported);
      if (device.import(exported) != mapping) _exit(2);
      for (int i = 0; i < 64; ++i) {
        auto& byte = mapping->address()[exported.offset + static_cast<uint64_t>(i)];
        byte = static_cast<std::byte>(static_cast<int>(byte) + 1);
      }
      _exit(0);
    } catch (const Error& error) {
      fprintf(stderr, "%s\n", error.what());
      _exit(error.status());
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(CudaDeviceTest, AnotherProcessMapsEveryHandle) {
  for (const CUdeviceptr address : {malloc(4096), reinterpret_cast<CUdeviceptr>(gpu_[0]->allocate(4096).base),
                                    from_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                                    chunks(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)}) {
    const Allocation allocation = find(address);
    const Export exported = gpu_[0]->export_allocation(allocation, at(address + 256));
    EXPECT_EQ(exported.offset, 256u);
    at(address)[256 + 63] = std::byte{41};
    EXPECT_EQ(add_one(*gpu_[1], exported), 0);
    EXPECT_EQ(at(address)[256 + 63], std::byte{42}) << static_cast<int>(allocation.handle);
    gpu_[0]->forget(exported);
  }
}

int open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

TEST_F(CudaDeviceTest, AnotherProcessMapsVmmSideBySideAsOne) {
  const CUdeviceptr three = chunks(3, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  const CUdeviceptr first = three + 65536 - 32;  // 32 bytes in the first part, 32 in the second
  const Allocation allocation = find(first, 64);
  const int before = open_descriptors();
  const Export exported = gpu_[0]->export_allocation(allocation, at(first));
  EXPECT_EQ(open_descriptors(), before + 3);
  at(first)[0] = at(first)[63] = std::byte{41};
  EXPECT_EQ(add_one(*gpu_[1], exported), 0);
  EXPECT_EQ(at(first)[0], std::byte{42});
  EXPECT_EQ(at(first)[63], std::byte{42});
  Export longer = exported;
  longer.bytes += 65536;
  EXPECT_EQ(add_one(*gpu_[1], longer), PW_STALE_KEY);
  gpu_[0]->forget(exported);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(add_one(*gpu_[1], exported), PW_STALE_KEY);
}

TEST_F(CudaDeviceTest, AForgottenDescriptorIsStale) {
  const Allocation allocation = find(chunks(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const Export exported = gpu_[0]->export_allocation(allocation, allocation.base);
  gpu_[0]->forget(exported);
  EXPECT_EQ(add_one(*gpu_[1], exported), PW_STALE_KEY);
}

TEST_F(CudaDeviceTest, InOneProcessTheOtherGpuIsLetIn) {
  gpu_[1]->make_queue();
  constexpr uint64_t kPart = 65536;
  const std::pair<CUdeviceptr, uint64_t> memories[] = {
      {malloc(kPart), kPart},
      {from_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), 4096},
      {chunks(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), kPart},
      {chunks(2, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), 2 * kPart}};
  for (const auto& [address, bytes] : memories) {
    const Allocation allocation = find(address, bytes);
    const auto queue = gpu_[1]->make_queue();
    Copy copy{at(address + bytes - 64), at(malloc(64, 1)), {}};
    copy.layout.shape.block_bytes = 64;
    EXPECT_EQ(queue->copy(copy, CopyBy::kernel), PW_DEVICE);
    const auto mapping = gpu_[1]->import(gpu_[0]->export_allocation(allocation, at(address)));
    EXPECT_EQ(mapping->address(), allocation.base);
    EXPECT_EQ(queue->copy(copy, CopyBy::kernel), PW_OK) << last_error_message();
  }
}

TEST_F(CudaDeviceTest, ReachesAndLinksByTheGpuOfTheMemory) {
  const Allocation allocation = gpu_[0]->allocate(4096);
  Export exported = gpu_[0]->export_allocation(allocation, allocation.base);
  exported.process = 1;
  std::string why;
  EXPECT_TRUE(gpu_[1]->reaches(exported, why));
  EXPECT_EQ(gpu_[1]->link(exported), "nvlink");
  EXPECT_EQ(gpu_[0]->link(exported), "time-sliced");
  set_attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 1);
  EXPECT_EQ(gpu_[0]->link(exported), "same");
  set_attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0);
  exported.process = getpid();
  EXPECT_EQ(gpu_[0]->link(exported), "same");
  exported.process = 1;
  EXPECT_TRUE(gpu_[1]->reaches(exported, why)) << "as the driver said before: it is asked once";
  fail("cuDeviceCanAccessPeer", 1);
  EXPECT_FALSE(make_gpu(1)->reaches(exported, why));
  EXPECT_NE(why.find("cuda:1 has no peer access to cuda:0"), std::string::npos) << why;
  exported.device_uuid.fill(std::byte{0xee});
  EXPECT_FALSE(gpu_[1]->reaches(exported, why));
  EXPECT_NE(why.find("GPU-eeeeeeee-eeee-eeee-eeee-eeeeeeeeeeee"), std::string::npos) << why;
}

TEST_F(CudaDeviceTest, PinsAreCountedAndNested) {
  alignas(64) static std::byte memory[8192];
  gpu_[0]->pin(memory, 4096);
  gpu_[1]->pin(memory, 4096);
  gpu_[0]->pin(memory + 1024, 1024);
  gpu_[0]->unpin(memory);
  gpu_[1]->unpin(memory);
  EXPECT_TRUE(describe_pointer(*driver_, reinterpret_cast<uint64_t>(memory)).is_host());
  gpu_[0]->unpin(memory + 1024);
  EXPECT_FALSE(describe_pointer(*driver_, reinterpret_cast<uint64_t>(memory)).is_host());
  // Pinned by the program itself: used, and left to it.
  driver_->cuMemHostRegister(memory, 4096, 0);
  gpu_[0]->pin(memory, 4096);
  gpu_[0]->unpin(memory);
  EXPECT_TRUE(describe_pointer(*driver_, reinterpret_cast<uint64_t>(memory)).is_host());
  EXPECT_THROW(gpu_[0]->pin(memory, 8192), Error);
  driver_->cuMemHostUnregister(memory);
}

TEST_F(CudaDeviceTest, OneLaunchCopiesAndWrites) {
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
  EXPECT_EQ(queue->copy_and_write(copy, CopyBy::engine, &word, 8), PW_OK);
  EXPECT_EQ(log(), "1d 1024\nwrite\n");
  EXPECT_EQ(word, 8u);
  copy.layout.shape.block_bytes = 0;
  EXPECT_EQ(queue->copy_and_write(copy, CopyBy::kernel, &word, 9), PW_OK);
  EXPECT_EQ(log(), "write\n");
  gpu_[0]->unpin(&word);
  EXPECT_EQ(queue->write(&word, 10), PW_DEVICE);
  EXPECT_NE(std::string(last_error_message()).find("cuda:0: writing a signal"), std::string::npos);
}

TEST_F(CudaDeviceTest, StridedCopiesUseTheEnginesDimensions) {
  const auto queue = gpu_[0]->make_queue();
  Copy copy{gpu_[0]->allocate(65536).base, gpu_[0]->allocate(65536).base, {}};
  copy.layout.shape = {.block_bytes = 8, .dims = 1, .count = {100}};
  copy.layout.to = {64};
  copy.layout.from = {32};
  log();
  EXPECT_EQ(queue->copy(copy, CopyBy::engine), PW_OK);
  EXPECT_EQ(log(), "3d 8 x 100 x 1\n");
  copy.layout.shape = {.block_bytes = 8, .dims = 3, .count = {2, 5, 10}};
  copy.layout.to = {6400, 640, 64};
  copy.layout.from = {3300, 320, 32};
  EXPECT_EQ(queue->copy(copy, CopyBy::engine), PW_OK);
  EXPECT_EQ(log(), "3d 8 x 10 x 5\n3d 8 x 10 x 5\n");
}

TEST_F(CudaDeviceTest, ErrorsOfTheStreamAreReturned) {
  const auto queue = gpu_[0]->make_queue();
  pw_status status = PW_OK;
  EXPECT_TRUE(queue->idle(status));
  EXPECT_EQ(status, PW_OK);
  fail("cuStreamQuery", CUDA_ERROR_NOT_READY);
  EXPECT_FALSE(queue->idle(status));
  EXPECT_EQ(status, PW_OK);
  fail("cuStreamQuery", 700);
  EXPECT_TRUE(queue->idle(status));
  EXPECT_EQ(status, PW_DEVICE);
}

TEST_F(CudaDeviceTest, WithoutKernelsTheEngineStillCopies) {
  CudaDevice device(*driver_, 0, *pins_,
                    [](int, const auto&) -> std::string { throw Error(PW_UNAVAILABLE, "no compiler"); });
  std::string why;
  EXPECT_FALSE(device.has_kernels(why));
  EXPECT_EQ(why, "no compiler");
  const auto queue = device.make_queue();
  Copy copy{device.allocate(64).base, device.allocate(64).base, {}};
  copy.layout.shape.block_bytes = 64;
  EXPECT_EQ(queue->copy(copy, CopyBy::engine), PW_OK);
  EXPECT_EQ(queue->copy(copy, CopyBy::kernel), PW_UNAVAILABLE);
  EXPECT_NE(std::string(last_error_message()).find("no compiler"), std::string::npos);
}

TEST_F(CudaDeviceTest, ThreadsKeepTheirOwnContext) {
  const auto queue = gpu_[1]->make_queue();
  const Current mine(*driver_, context(0));
  pw_status status;
  queue->idle(status);
  CUcontext now = nullptr;
  driver_->cuCtxGetCurrent(&now);
  EXPECT_EQ(now, context(0));
}

TEST(CudaDriver, SaysWhyItCannotBeUsed) {
  std::string why;
  EXPECT_EQ(Driver::load("/nowhere/libcuda.so.1", why), nullptr);
  EXPECT_NE(why.find("/nowhere/libcuda.so.1"), std::string::npos) << why;
  EXPECT_NE(why.find("cuda_library"), std::string::npos) << why;
  EXPECT_EQ(Driver::load("libm.so.6", why), nullptr);
  EXPECT_NE(why.find("not a CUDA driver"), std::string::npos) << why;
  void* library = dlopen(kFakeCuda.c_str(), RTLD_NOW);
  const auto set_version = reinterpret_cast<fake_cuda::SetVersion*>(dlsym(library, "fake_cuda_set_version"));
  const auto fail_next = reinterpret_cast<fake_cuda::Fail*>(dlsym(library, "fake_cuda_fail"));
  set_version(11080);
  EXPECT_EQ(Driver::load(kFakeCuda, why), nullptr);
  EXPECT_NE(why.find("supports CUDA 11.8; Peerway needs 12.0"), std::string::npos) << why;
  set_version(13000);
  fail_next("cuInit", CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(Driver::load(kFakeCuda, why), nullptr);
  EXPECT_NE(why.find("sees no GPU"), std::string::npos) << why;
}

}  // namespace
}  // namespace pw::cuda
