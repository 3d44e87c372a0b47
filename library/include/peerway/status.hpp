// Status, Error, and the small types that all of the C++ interface uses. Part of peerway.hpp.
#ifndef PEERWAY_STATUS_HPP
#define PEERWAY_STATUS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "peerway/peerway.h"

namespace peerway {

enum class [[nodiscard]] Status : int {
  ok = PW_OK,
  timeout = PW_TIMEOUT,
  peer_lost = PW_PEER_LOST,
  invalid_argument = PW_INVALID_ARGUMENT,
  out_of_range = PW_OUT_OF_RANGE,
  bad_key = PW_BAD_KEY,
  stale_key = PW_STALE_KEY,
  foreign_key = PW_FOREIGN_KEY,
  unsupported = PW_UNSUPPORTED,
  unavailable = PW_UNAVAILABLE,
  no_memory = PW_NO_MEMORY,
  denied = PW_DENIED,
  system = PW_SYSTEM,
  device = PW_DEVICE,
  bad_table = PW_BAD_TABLE,
  bad_config = PW_BAD_CONFIG,
  closed = PW_CLOSED,
  internal = PW_INTERNAL,
  interrupted = PW_INTERRUPTED,
};

/// How the host waits.
enum class WaitPolicy : int {
  busy_poll = PW_WAIT_BUSY_POLL,  ///< polls: the lowest latency, and a whole core
  blocking = PW_WAIT_BLOCKING,    ///< polls for a few microseconds, then sleeps until woken
};

/// The parts that a halo refreshes.
enum class HaloParts : int {
  faces = PW_HALO_FACES,
  corners = PW_HALO_CORNERS,  ///< edges and corners, too
};

inline const char* to_string(Status status) { return pw_status_name(static_cast<pw_status>(status)); }

/// The message of this thread's last failure: what was asked, what was found, what to do.
inline std::string error_message() { return pw_error_message(); }

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  [[nodiscard]] Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// Throws Error, with this thread's message, unless `status` is ok.
inline void check(Status status) {
  if (status != Status::ok) throw Error(status, error_message());
}
inline void check(pw_status status) { check(static_cast<Status>(status)); }

using Timeout = std::chrono::nanoseconds;
inline constexpr Timeout forever = Timeout::max();  ///< no timeout; the death of a peer still ends the wait
inline constexpr int any_rank = PW_ANY_RANK;

/// The bytes that let a peer import a region or a signal; move them as you like.
using Key = std::vector<std::byte>;

inline constexpr pw_device host{PW_HOST, 0};
constexpr pw_device cuda(int32_t index = -1) {
  return {PW_CUDA, index};
}  ///< -1: the device bound to this rank
constexpr pw_device hip(int32_t index = -1) { return {PW_HIP, index}; }

namespace detail {
inline uint64_t nanoseconds(Timeout timeout) {
  if (timeout == forever) return PW_FOREVER;
  return static_cast<uint64_t>(std::max<Timeout::rep>(timeout.count(), 0));
}

template <typename Handle, auto Free>
struct Freer {
  void operator()(Handle* handle) const { static_cast<void>(Free(handle)); }
};
template <typename Handle, auto Free>
using Owner = std::unique_ptr<Handle, Freer<Handle, Free>>;

/// Calls `query(buffer, capacity, &length)`, the form in which the C interface hands out keys.
template <typename Query>
Key key_of(Query query) {
  Key key(PW_KEY_MAX);
  size_t length = 0;
  check(query(key.data(), key.size(), &length));
  key.resize(length);
  return key;
}
}  // namespace detail

}  // namespace peerway

#endif
