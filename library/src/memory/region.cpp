#include "memory/region.h"

#include <sched.h>

#include <algorithm>

#include "base/format.h"
#include "base/status.h"

namespace pw {

Region::Region(Device& device, Allocation allocation, std::byte* address, uint64_t bytes, Access access,
               std::shared_ptr<void> memory, ControlSegment& control)
    : device_(device),
      allocation_(std::move(allocation)),
      address_(address),
      bytes_(bytes),
      access_(access),
      memory_(std::move(memory)),
      control_(control),
      slot_(control.open_slot()),
      generation_(control.control().generation[slot_].load(std::memory_order_relaxed)) {}

Region::~Region() {
  retire();  // first of all: peers are refused from now on
  attachments.drop();
  cpu_map.mapping.reset();
  for (Device* device : pinned_for_) device->unpin(address_);
  if (has_export_) device_.forget(export_);
}

void Region::retire() {
  if (!retired_.exchange(true, std::memory_order_acq_rel)) control_.close_slot(slot_);
}

const Export& Region::exported() {
  std::lock_guard lock(mutex_);
  if (!has_export_) {
    export_ = device_.export_allocation(allocation_, address_);
    has_export_ = true;
  }
  return export_;
}

void Region::pin_for(Device& device) {
  std::lock_guard lock(mutex_);
  for (Device* done : pinned_for_)
    if (done == &device) return;
  device.pin(address_, bytes_);
  pinned_for_.push_back(&device);
}

namespace {

/// A GPU's driver allocates 2 MiB at least. A plan whose two messages of 786 KB go through slots needs 3.4
/// MB.
constexpr uint64_t kSharedBytes = 32 << 20;
constexpr uint64_t kMostOfPart = kSharedBytes / 4;
constexpr uint64_t kPartAlignment = 512;

Device& owner_of(const void* address, uint64_t bytes, Allocation& allocation) {
  for (Device* device : devices()) {
    if (device->id().kind == PW_HOST) continue;  // asked last, because the host answers for every address
    if (auto allocated = device->find(address, bytes)) {
      allocation = *allocated;
      return *device;
    }
  }
  allocation = *host_device().find(address, bytes);
  return host_device();
}

}  // namespace

std::shared_ptr<Region> Registry::allocate(Device& device, uint64_t bytes) {
  if (bytes == 0) throw Error(PW_INVALID_ARGUMENT, "a region of 0 bytes; a region has at least 1");
  Allocation allocation;
  std::shared_ptr<void> memory = allocate_memory(device, bytes, allocation);
  std::byte* const address = allocation.base;
  return keep(std::make_shared<Region>(device, std::move(allocation), address, bytes, Access::read_write,
                                       std::move(memory), control_));
}

std::shared_ptr<void> Registry::allocate_memory(Device& device, uint64_t bytes, Allocation& allocation) {
  allocation = device.allocate(bytes);
  return {allocation.base, [&device, allocation](void*) { device.release(allocation); }};
}

std::shared_ptr<Region> Registry::allocate_part(Device& device, uint64_t bytes) {
  const auto allocated_alone = [&] {
    std::shared_ptr<Region> region = allocate(device, bytes);
    device.clear(region->address(), bytes);
    return region;
  };
  if (bytes == 0 || bytes > kMostOfPart || device.id().kind == PW_HOST) return allocated_alone();
  std::lock_guard lock(sharing_);
  Shared& shared = shared_[&device];
  std::shared_ptr<void> memory = shared.memory.lock();
  if (memory == nullptr || bytes > kSharedBytes - shared.used) {
    Allocation allocation;
    try {
      memory = allocate_memory(device, kSharedBytes, allocation);
    } catch (const Error&) {  // there may still be room for this part alone
      return allocated_alone();
    }
    // All of it now: a GPU takes longer to begin to clear than to clear this much.
    device.clear(allocation.base, kSharedBytes);
    shared = {std::move(allocation), memory};
  }
  std::byte* const address = shared.allocation.base + shared.used;
  shared.used += (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  return keep(std::make_shared<Region>(device, shared.allocation, address, bytes, Access::read_write,
                                       std::move(memory), control_));
}

std::shared_ptr<Region> Registry::add(void* pointer, uint64_t bytes, Access access) {
  auto* address = static_cast<std::byte*>(pointer);
  if (address == nullptr || bytes == 0)
    throw Error(PW_INVALID_ARGUMENT, format("cannot register {} bytes at {}; a region has an address and at "
                                            "least 1 byte",
                                            bytes, pointer));
  if (reinterpret_cast<uint64_t>(address) + bytes < bytes)
    throw Error(PW_OUT_OF_RANGE, format("{} bytes at {} wrap around the address space", bytes, pointer));
  // Released after the lock, because releasing the last pointer waits for a thread that serves a peer.
  std::shared_ptr<Region> old;
  std::lock_guard adding(adding_);
  old = known({address, bytes, access});
  if (old != nullptr && old->current()) return old;
  // The memory was freed and allocated again: holders of the old key must not reach it.
  if (old != nullptr) old->retire();
  Allocation allocation;
  Device& device = owner_of(address, bytes, allocation);
  if (bytes > allocation.bytes - static_cast<uint64_t>(address - allocation.base))
    throw Error(PW_OUT_OF_RANGE,
                format("{} bytes at {} leave the allocation of {} bytes at {} on {}", bytes, pointer,
                       allocation.bytes, static_cast<void*>(allocation.base), to_string(device.id())));
  return keep(
      std::make_shared<Region>(device, std::move(allocation), address, bytes, access, nullptr, control_));
}

Registry::RangeAndAccess Registry::range_and_access_of(const Region& region) {
  return {region.address(), region.bytes(), region.access()};
}

std::shared_ptr<Region> Registry::known(const RangeAndAccess& range) {
  std::lock_guard lock(mutex_);
  const auto entry = by_range_.find(range);
  return entry == by_range_.end() ? nullptr : entry->second.lock();
}

std::shared_ptr<Region> Registry::keep(std::shared_ptr<Region> region) {
  if (region->device().id().kind != PW_HOST) accelerator_.store(&region->device(), std::memory_order_relaxed);
  Region* const plain = region.get();
  std::shared_ptr<Region> held(plain, [this, region](Region*) mutable {
    region->retire();
    forget(*region);
    // A thread may be serving a staged transfer of a peer from this region; it releases the region within one
    // chunk. A forked child has no such thread.
    while (region.use_count() > 1 && control_.mine()) sched_yield();
    region.reset();
  });
  std::lock_guard lock(mutex_);
  by_range_[range_and_access_of(*plain)] = held;
  by_slot_[plain->slot()] = region;
  return held;
}

void Registry::forget(const Region& region) {
  std::lock_guard lock(mutex_);
  const auto entry = by_range_.find(range_and_access_of(region));
  if (entry != by_range_.end() && entry->second.expired()) by_range_.erase(entry);
}

std::shared_ptr<Region> Registry::find(uint32_t slot, uint64_t generation) {
  std::lock_guard lock(mutex_);
  const auto entry = by_slot_.find(slot);
  if (entry == by_slot_.end()) return nullptr;
  auto region = entry->second.lock();
  return region && region->generation() == generation && !region->closed() ? region : nullptr;
}

bool Registry::holds(uint64_t address, uint64_t bytes) {
  // Released after the lock, because releasing the last pointer closes the region.
  std::vector<std::shared_ptr<Region>> held;
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(by_slot_, [&](const auto& entry) {
    const auto region = held.emplace_back(entry.second.lock());
    if (region == nullptr || region->closed()) return false;
    const auto begin = reinterpret_cast<uint64_t>(region->address());
    return address >= begin && bytes <= region->bytes() && address - begin <= region->bytes() - bytes;
  });
}

}  // namespace pw
