// Regions, remotes and signals: what is moved, where to, and when it has arrived. Part of peerway.hpp.
#ifndef PEERWAY_MEMORY_HPP
#define PEERWAY_MEMORY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "peerway/handles.h"
#include "peerway/status.hpp"

namespace peerway {

/// A contiguous range: `bytes` bytes from `offset` on.
template <typename Object>
struct Span {
  Object* of;
  uint64_t offset;
  uint64_t bytes;
};

/// Blocks at regular strides in up to PW_MAX_DIMS dimensions.
template <typename Object>
struct Block {
  Object* of;
  pw_block block;
};

/// Blocks of `block_bytes` bytes, the first at `offset`; counts[0] and strides[0] (in bytes) are the slowest
/// dimension. Throws Error if counts and strides differ in number or are more than PW_MAX_DIMS.
inline pw_block make_block(std::span<const uint64_t> counts, std::span<const int64_t> strides,
                           uint64_t block_bytes, uint64_t offset = 0) {
  if (counts.size() != strides.size() || counts.size() > PW_MAX_DIMS) {
    throw Error(Status::invalid_argument, "peerway: a block with " + std::to_string(counts.size()) +
                                              " counts and " + std::to_string(strides.size()) +
                                              " strides; give the same number of both, at most " +
                                              std::to_string(PW_MAX_DIMS) + ".");
  }
  pw_block block{};
  block.offset = offset;
  block.block_bytes = block_bytes;
  block.dims = static_cast<uint32_t>(counts.size());
  std::copy(counts.begin(), counts.end(), block.count);
  std::copy(strides.begin(), strides.end(), block.stride);
  return block;
}

namespace detail {
template <typename Object>
Block<Object> whole(Span<Object> span) {
  return {span.of, make_block({}, {}, span.bytes, span.offset)};
}

/// span() and block() for Region and Remote.
template <typename Self, typename Object>
class Addressed {
 private:
  Object* mine() const { return static_cast<const Self*>(this)->get(); }

 public:
  [[nodiscard]] Span<Object> span(uint64_t offset, uint64_t bytes) const { return {mine(), offset, bytes}; }
  [[nodiscard]] Span<Object> all() const { return {mine(), 0, static_cast<const Self*>(this)->bytes()}; }
  [[nodiscard]] Block<Object> block(std::initializer_list<uint64_t> counts,
                                    std::initializer_list<int64_t> strides, uint64_t block_bytes,
                                    uint64_t offset = 0) const {
    return {mine(), make_block({counts.begin(), counts.size()}, {strides.begin(), strides.size()},
                               block_bytes, offset)};
  }
  [[nodiscard]] Block<Object> block(const pw_block& block) const { return {mine(), block}; }
};
}  // namespace detail

/// A registered range of this rank's memory. Once it is closed its key is stale.
class Region : public detail::Addressed<Region, pw_region> {
 public:
  explicit Region(pw_region* region) : region_(region) {}
  [[nodiscard]] void* address() const { return pw_region_address(get()); }
  [[nodiscard]] uint64_t bytes() const { return pw_region_bytes(get()); }
  [[nodiscard]] pw_device device() const { return pw_region_device(get()); }
  /// Whether it was registered as memory that may not be written.
  [[nodiscard]] bool read_only() const { return pw_region_access(get()) == PW_READ_ONLY; }
  [[nodiscard]] Key key() const {
    return detail::key_of(
        [&](void* to, size_t room, size_t* length) { return pw_region_key(get(), to, room, length); });
  }
  void close() { check(pw_region_free(region_.release())); }
  [[nodiscard]] pw_region* get() const { return region_.get(); }

 private:
  detail::Owner<pw_region, pw_region_free> region_;
};

/// Another rank's region or signal.
class Remote : public detail::Addressed<Remote, pw_remote> {
 public:
  explicit Remote(pw_remote* remote) : remote_(remote) {}
  [[nodiscard]] int rank() const { return pw_remote_rank(get()); }
  [[nodiscard]] uint64_t bytes() const { return pw_remote_bytes(get()); }
  /// Whether its owner registered it as memory that may not be written.
  [[nodiscard]] bool read_only() const { return pw_remote_access(get()) == PW_READ_ONLY; }
  /// Returns the struct with which kernels of that GPU put into this region (peerway/device.cuh).
  [[nodiscard]] pw_remote_handle handle(pw_device device) const {
    pw_remote_handle handle{};
    check(pw_remote_get_handle(get(), device, &handle));
    return handle;
  }
  /// Returns the struct with which kernels of that GPU notify this signal. Until release_notify_handle()
  /// nothing else in this rank may notify it.
  [[nodiscard]] pw_notify_handle notify_handle(pw_device device) {
    pw_notify_handle handle{};
    check(pw_remote_get_notify_handle(get(), device, &handle));
    return handle;
  }
  /// Call it when no kernel that has the handle runs any more.
  void release_notify_handle() { check(pw_remote_release_notify_handle(get())); }

  void close() { check(pw_remote_free(remote_.release())); }
  [[nodiscard]] pw_remote* get() const { return remote_.get(); }

 private:
  detail::Owner<pw_remote, pw_remote_free> remote_;
};

/// A 64-bit counter in this rank's memory that peers notify; it only grows.
class Signal {
 public:
  explicit Signal(pw_signal* signal) : signal_(signal) {}
  /// Throws Error if the signal lies in GPU memory and cannot be read.
  [[nodiscard]] uint64_t value() const {
    uint64_t value = 0;
    check(pw_signal_value(get(), &value));
    return value;
  }
  [[nodiscard]] Key key() const {
    return detail::key_of(
        [&](void* to, size_t room, size_t* length) { return pw_signal_key(get(), to, room, length); });
  }
  /// Returns ok once the signal is at least `value`; else timeout, peer_lost or closed.
  [[gnu::always_inline]] Status wait(uint64_t value, Timeout timeout = forever) {
    return static_cast<Status>(pw_signal_wait(get(), value, detail::nanoseconds(timeout)));
  }
  /// Returns the struct with which kernels of that GPU wait for this signal (peerway/device.cuh). `timeout`
  /// limits each wait.
  [[nodiscard]] pw_signal_handle handle(pw_device device, Timeout timeout = forever) {
    pw_signal_handle handle{};
    check(pw_signal_get_handle(get(), device, detail::nanoseconds(timeout), &handle));
    return handle;
  }
  /// ok, or what ended a kernel's wait early: peer_lost, timeout or closed.
  [[nodiscard]] Status status() const { return static_cast<Status>(pw_signal_status(get())); }

  void close() { check(pw_signal_free(signal_.release())); }
  [[nodiscard]] pw_signal* get() const { return signal_.get(); }

 private:
  detail::Owner<pw_signal, pw_signal_free> signal_;
};

/// Adds `by` to `signal`: with a put, once its data is visible at the target, or by Context::notify().
inline pw_notification notify(const Remote& signal, uint64_t by = 1) {
  pw_notification notification{};
  notification.signal = signal.get();
  notification.by = by;
  return notification;
}

}  // namespace peerway

#endif
