// Regions: registered ranges of this rank's memory. Registering a range twice shares one registration. If
// memory was freed and allocated again, its allocation has another id: the old registration is then closed,
// and its keys become stale.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "device/device.h"
#include "memory/attachments.h"
#include "memory/control.h"
#include "memory/key.h"

namespace pw {

class CpuMapping;

/// A registered range of memory of this rank. Peers know it by its slot and generation. All registrations of
/// the same range share one object. (peerway::Region of the C++ interface owns a handle of such a
/// registration.)
class Region : public std::enable_shared_from_this<Region> {
 public:
  /// `memory` owns the memory of allocate(); it is null if the caller owns the memory.
  Region(Device& device, Allocation allocation, std::byte* address, uint64_t bytes, Access access,
         std::shared_ptr<void> memory, ControlSegment& control);
  ~Region();
  Region(const Region&) = delete;

  [[nodiscard]] std::byte* address() const { return address_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] Access access() const { return access_; }
  /// The bytes that a get may write: none where the region is read-only.
  [[nodiscard]] uint64_t writable_bytes() const { return access_ == Access::read_write ? bytes_ : 0; }
  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] const Allocation& allocation() const { return allocation_; }
  /// Keeps the memory usable after the region and its context have ended; null if the caller owns the memory.
  [[nodiscard]] const std::shared_ptr<void>& memory() const { return memory_; }
  [[nodiscard]] uint32_t slot() const { return slot_; }
  [[nodiscard]] uint64_t generation() const { return generation_; }

  /// Returns the handle that peers map; made at the first call. A region that cannot be exported has
  /// Handle::none.
  const Export& exported();

  /// Lets `device` access this region, which is host memory, at full speed. Undone when the region is closed.
  void pin_for(Device& device);

  /// Ends the region for peers: its keys are stale from now on. A second call does nothing.
  void retire();
  [[nodiscard]] bool closed() const { return retired_.load(std::memory_order_acquire); }

  /// Whether the memory is still the allocation that was registered.
  [[nodiscard]] bool current() const { return device_.allocation_id(address_) == allocation_.id; }

  /// Data that paths keep with the region (a registration with UCX), destroyed with it.
  Attachments attachments;

  /// The CPU's mapping of this region of device memory, or why there is none. CpuMaps keeps it here.
  struct CpuMap {
    std::shared_ptr<CpuMapping> mapping;
    std::string why_not;
    std::atomic<CpuMapping*> ready{nullptr};  ///< the mapping, once it exists
  } cpu_map;

  /// Small number of this class of memory (device, handle), used to look up routes. The context sets it.
  std::atomic<uint32_t> memory_class = 0;

 private:
  Device& device_;
  Allocation allocation_;
  std::byte* address_;
  uint64_t bytes_;
  Access access_;
  std::shared_ptr<void> memory_;
  ControlSegment& control_;
  uint32_t slot_;
  uint64_t generation_;
  std::mutex mutex_;
  bool has_export_ = false;
  Export export_;
  std::vector<Device*> pinned_for_;
  std::atomic<bool> retired_ = false;
};

/// All open regions of a context. Dropping the last pointer from allocate() or add() closes a region: it
/// becomes stale, and when no thread serves a peer from it any more, the caller may free its memory.
class Registry {
 public:
  explicit Registry(ControlSegment& control) : control_(control) {}

  std::shared_ptr<Region> allocate(Device& device, uint64_t bytes);

  /// The same, filled with zeros. Regions of up to 8 MiB may share an allocation: a peer maps it once, and a
  /// GPU's driver takes long to map. A peer may still write to a region after it was closed, so nothing else
  /// gets its bytes.
  std::shared_ptr<Region> allocate_part(Device& device, uint64_t bytes);

  /// Returns the registration of exactly this range with this access, shared if it was registered before.
  /// Throws Error if the range is empty, wraps around, or leaves its allocation.
  std::shared_ptr<Region> add(void* address, uint64_t bytes, Access access = Access::read_write);

  /// Returns the open region with this slot and generation, for a thread that serves a peer; null if it was
  /// closed.
  std::shared_ptr<Region> find(uint32_t slot, uint64_t generation);

  /// Returns the device (not the host) whose memory was registered last; null if there is none.
  [[nodiscard]] Device* accelerator() const { return accelerator_.load(std::memory_order_relaxed); }

  /// Whether these bytes of this process lie in one open region.
  bool holds(uint64_t address, uint64_t bytes);

 private:
  using RangeAndAccess = std::tuple<std::byte*, uint64_t, Access>;
  static RangeAndAccess range_and_access_of(const Region& region);
  /// An allocation that regions share. It lives as long as one of them.
  struct Shared {
    Allocation allocation;
    std::weak_ptr<void> memory;
    uint64_t used = 0;  ///< bytes that regions have or had
  };
  static std::shared_ptr<void> allocate_memory(Device& device, uint64_t bytes, Allocation& allocation);
  std::shared_ptr<Region> known(const RangeAndAccess& range);
  std::shared_ptr<Region> keep(std::shared_ptr<Region> region);
  void forget(const Region& region);

  ControlSegment& control_;
  std::atomic<Device*> accelerator_ = nullptr;
  std::mutex adding_;  ///< makes two threads that register the same range share it
  std::mutex mutex_;   ///< protects the maps
  std::map<RangeAndAccess, std::weak_ptr<Region>> by_range_;
  std::map<uint32_t, std::weak_ptr<Region>> by_slot_;
  std::mutex sharing_;  ///< protects shared_
  std::map<Device*, Shared> shared_;
};

}  // namespace pw
