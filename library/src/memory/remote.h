// A remote: another rank's region or signal, imported by key and mapped if this host allows it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "device/device.h"
#include "memory/attachments.h"
#include "memory/control.h"
#include "memory/importer.h"
#include "memory/key.h"

namespace pw {

struct Resolved;

/// (peerway::Remote of the C++ interface owns a handle of such an object.)
class Remote : public std::enable_shared_from_this<Remote> {
 public:
  /// Throws Error if the owner is on this host and its memory cannot be mapped.
  Remote(Key key, Importer& importer, int own_rank);

  const Key key;

  [[nodiscard]] int rank() const { return key.rank; }
  [[nodiscard]] uint64_t bytes() const { return key.bytes; }
  /// The bytes that a put may write: none of a region that its owner registered as read-only.
  [[nodiscard]] uint64_t writable_bytes() const { return key.access == Access::read_write ? key.bytes : 0; }
  [[nodiscard]] bool same_host() const { return control_ != nullptr; }
  [[nodiscard]] bool same_process() const { return importer_.same_process(key.rank); }

  /// False once the owner has closed the region. Needs no message if the owner is on this host; for other
  /// hosts it is always true.
  [[nodiscard]] bool current() const noexcept {
    return generation_ == nullptr || generation_->load(std::memory_order_acquire) == key.generation;
  }

  /// The address at which the CPU reaches the region, or null.
  [[nodiscard]] std::byte* host_address() const noexcept { return host_address_; }

  /// Returns the address at which queues of `device` reach the region; maps it at the first call. Throws
  /// Error with the reason if that fails.
  std::byte* address_on(Device& device);

  /// word(): the word of the owner's control segment that this rank notifies; null if the owner is on another
  /// host or the signal lies in device memory. word_on(): the word that this rank notifies, for queues of
  /// `device`; null if the owner is on another host. Throws Error if the device cannot reach it.
  [[nodiscard]] std::atomic<uint64_t>* word() const noexcept { return word_; }
  uint64_t* word_on(Device& device);
  /// The word's address in the owner's process, for paths that reach it by UCX or a NIC.
  [[nodiscard]] uint64_t word_address() const noexcept { return word_address_; }

  /// Where the owner's threads sleep, to be woken after something that they may wait for; null if the owner
  /// is on another host.
  [[nodiscard]] Sleepers* sleepers() const noexcept {
    return control_ == nullptr ? nullptr : &control_->sleepers;
  }

  /// Whether this is a signal in device memory, which only kernels and plans of devices notify.
  [[nodiscard]] bool is_device_signal() const noexcept { return pw::is_device_signal(key); }

  /// This rank's state of the signal; null for a region.
  [[nodiscard]] SignalSender* sender() const noexcept { return sender_.get(); }

  /// Data that paths need to reach the memory, destroyed with the remote.
  Attachments attachments;

  /// Routes that were looked up before, by memory class of the local side, operation and shape class
  /// (context/resolver.h).
  static constexpr uint32_t kMemoryClasses = 16, kOps = 2, kShapeClasses = 8;
  std::array<std::atomic<const Resolved*>, kMemoryClasses * kOps * kShapeClasses> routes{};

 private:
  void open_signal(int own_rank);
  void open_device_signal(int own_rank);

  Importer& importer_;
  std::shared_ptr<Control> control_;
  std::atomic<uint64_t>* generation_ = nullptr;
  std::atomic<uint64_t>* word_ = nullptr;
  uint64_t word_address_ = 0;
  uint64_t word_offset_ = 0;  ///< of a signal in device memory: offset of this rank's word in `exported`
  std::shared_ptr<SignalSender> sender_;
  std::byte* host_address_ = nullptr;
  std::mutex mutex_;
  std::map<const Device*, std::shared_ptr<Mapping>> mappings_;
};

/// Adds `by` to `signal` after the data of the same operation.
struct Notification {
  Remote* signal = nullptr;
  uint64_t by = 0;
  bool by_plan = false;  ///< made by the plan that has reserved the signal
};

}  // namespace pw
