// How an operation in a kernel ended.
#ifndef PEERWAY_DEVICE_RESULT_CUH
#define PEERWAY_DEVICE_RESULT_CUH

#include "peerway/device/memory.cuh"
#include "peerway/device/scope.cuh"
#include "peerway/handles.h"

namespace peerway::device {

/// The same for all threads of a scope. What is not `ok` has stored and raised nothing of its own, but what
/// was cancelled or timed out may have moved a part.
enum class Result : unsigned {
  ok = 0,
  cancelled,      ///< by the host: a rank was lost, or the context closed
  timeout,        ///< what was waited for did not come in time, now or in an earlier wait of a plan or FIFO
  out_of_range,   ///< past the end of the remote region, or of the lane's slots
  misaligned,     ///< address, length or offset are no multiples of the lane's unit
  other_version,  ///< the handle was made by a library of another PW_HANDLE_VERSION than this header
};

namespace detail {

/// What pw_guard::report has in its lowest byte.
constexpr unsigned kCancelledByHost = 1, kTimedOut = 2;

/// Every handle's `version` is among what kernels have as parameters: the check loads nothing more.
template <class Handle>
PW_ON_DEVICE bool is_of_this_version(const Handle& handle) {
  return handle.version == PW_HANDLE_VERSION;
}

/// How waits under this guard ended, as far as this scope was told that one of its own has not got what it
/// waited for.
template <class Scope>
PW_ON_DEVICE Result why_ended(const Scope& scope, const pw_guard& guard) {
  const bool timed_out = (load_acquire(guard.report) & 0xff) == kTimedOut;
  return scope.all(!timed_out) ? Result::cancelled : Result::timeout;
}

/// `there`: whether this thread has got it.
template <class Scope>
PW_ON_DEVICE Result result_of(const Scope& scope, bool there, const pw_guard& guard) {
  return scope.all(there) ? Result::ok : why_ended(scope, guard);
}

}  // namespace detail
}  // namespace peerway::device

#endif
