#include "memory/pinned.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

constexpr uint64_t kChunkBytes = 1 << 16;

}  // namespace

std::shared_ptr<void> pinned_memory(Device& device, uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(PW_NO_MEMORY, format("{} bytes of host memory{}", bytes, errno_text(errno)));
  try {
    device.pin(memory, bytes);
  } catch (...) {
    munmap(memory, bytes);
    throw;
  }
  return {memory, [&device, bytes](void* old) {
            device.unpin(old);
            munmap(old, bytes);
          }};
}

std::shared_ptr<void> PinnedPool::take() {
  std::unique_lock lock(slots_->mutex);
  if (slots_->free.empty()) {
    const std::shared_ptr<void>& chunk =
        slots_->chunks.emplace_back(pinned_memory(slots_->device, kChunkBytes));
    for (uint64_t at = 0; at < kChunkBytes; at += kSlotBytes)
      slots_->free.push_back(static_cast<std::byte*>(chunk.get()) + at);
  }
  void* const slot = slots_->free.front();
  slots_->free.pop_front();
  lock.unlock();  // what gives the slot back takes it
  std::memset(slot, 0, kSlotBytes);
  return {slot, [slots = slots_](void* old) {
            std::lock_guard giving(slots->mutex);
            slots->free.push_back(old);
          }};
}

}  // namespace pw
