// How an operation in a kernel ended.
#ifndef PEERWAY_DEVICE_RESULT_CUH
#define PEERWAY_DEVICE_RESULT_CUH

#include "peerway/device/memory.cuh"
#include "peerway/device/scope.cuh"
#include "peerway/handles.h"

namespace peerway::device {

/// All threads of a scope get the same result. If an operation does not return ok, it notified nothing and
/// stored nothing, except that a cancelled or timed-out operation may have moved a part of its data.
enum class Result : unsigned {
  ok = 0,
  cancelled,      ///< by the host: a rank was lost, or the context closed
  timeout,        ///< a wait lasted longer than its timeout, now or earlier in the same plan or FIFO
  out_of_range,   ///< past the end of the remote region, or of the lane's slots
  misaligned,     ///< address, length or offset is not a multiple of the lane's unit
  other_version,  ///< the library that made the handle has another PW_HANDLE_VERSION than this header
};

namespace detail {

/// The lowest byte of pw_guard::report.
constexpr unsigned kCancelledByHost = 1, kTimedOut = 2;

/// Needs no load: `version` is part of the handle, which is a kernel parameter.
template <class Handle>
PW_ON_DEVICE bool is_of_this_version(const Handle& handle) {
  return handle.version == PW_HANDLE_VERSION;
}

/// Returns why waits under this guard ended. All threads of a scope call it after a thread's wait ended
/// early.
template <class Scope>
PW_ON_DEVICE Result why_ended(const Scope& scope, const pw_guard& guard) {
  const bool timed_out = (load_acquire(guard.report) & 0xff) == kTimedOut;
  return scope.all(!timed_out) ? Result::cancelled : Result::timeout;
}

/// Combines the threads' outcomes; `there` says whether this thread's wait succeeded.
template <class Scope>
PW_ON_DEVICE Result result_of(const Scope& scope, bool there, const pw_guard& guard) {
  return scope.all(there) ? Result::ok : why_ended(scope, guard);
}

}  // namespace detail
}  // namespace peerway::device

#endif
