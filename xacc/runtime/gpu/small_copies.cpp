#include "xacc/runtime/gpu/small_copies.h"

#include <cstdlib>
#include <cstring>

#include "peerway/xacc/acc.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/gpu.h"

namespace pwx {
namespace {

constexpr size_t kPinned = 4096, kPlaces = kPinned / kSmallCopy;

std::byte* pinned = nullptr;

std::byte* pinned_place(size_t number) {
  if (pinned == nullptr) {
    pinned = static_cast<std::byte*>(std::aligned_alloc(kPinned, kPinned));
    if (pinned == nullptr) throw Failure("no memory for copies from the GPU");
    const Gpu& gpu = the_gpu();
    gpu.check(gpu.driver.cuMemHostRegister(pinned, kPinned, pw::cuda::kHostRegisterPortable),
              "pinning memory");
  }
  return pinned + number * kSmallCopy;
}

}  // namespace

void SmallCopies::to_host(void* host, pw::cuda::CUdeviceptr device, size_t bytes) {
  if (copies_.size() == kPlaces) finish();
  const Gpu& gpu = the_gpu();
  const auto to = reinterpret_cast<pw::cuda::CUdeviceptr>(pinned_place(copies_.size()));
  gpu.check(gpu.driver.cuMemcpyAsync(to, device, bytes, stream_of(PWX_QUEUE_SYNC)), "a copy from the memory");
  copies_.push_back({host, bytes});
}

void SmallCopies::finish() {
  if (copies_.empty()) return;
  wait_for(PWX_QUEUE_SYNC);
  for (size_t i = 0; i < copies_.size(); ++i) std::memcpy(copies_[i].host, pinned_place(i), copies_[i].bytes);
  copies_.clear();
}

void free_small_copies() {
  if (pinned == nullptr) return;
  the_gpu().driver.cuMemHostUnregister(pinned);
  std::free(pinned);
  pinned = nullptr;
}

}  // namespace pwx
