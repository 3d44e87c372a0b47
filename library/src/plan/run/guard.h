// The guard of a plan: words that all waits of the plan poll. The host stores the reason in the guard to end
// the waits, wherever they run. A wait that times out stores a report there, from which the host learns of
// it.
#pragma once

#include <memory>
#include <string>

#include "base/setting.h"
#include "device/device.h"
#include "device/program.h"
#include "team/team.h"

namespace pw {

class Context;

namespace settings {

extern const SecondsSetting plan_timeout;

}  // namespace settings

/// Makes a guard: pinned memory, and a word of the device in which waits on it share what they have read of
/// the guard. The context must outlive the guard. Throws Error.
std::shared_ptr<Guard> make_guard(Context& context, Device& device, uint64_t timeout_ns);

/// Cancels the plan: ends all its waits. `rank` is the lost rank, or -1. Only the first reason counts.
void cancel(Guard& guard, pw_status why, int rank);
/// Cancels the plan if the rank is lost, or for PW_ANY_RANK if any is. The team's thread also cancels it, but
/// a caller that asks for a status may know of the loss before.
void cancel_if_lost(Guard& guard, const Team& team, int rank);

/// How the waits of a plan ended early, read from the guard's words.
struct Ended {
  pw_status why =
      PW_OK;        ///< PW_OK: they did not; PW_TIMEOUT: one timed out; else the host cancelled the plan
  int rank = -1;    ///< the rank that was waited for, or that was lost
  uint64_t of = 0;  ///< the epoch or value that was waited for: its lower 32 bits
};
Ended end_of(const Guard& guard);

/// The guard's addresses as waits on the device need them.
pw_guard seen_by(Device& device, const Guard& guard, uint64_t timeout_ns);

/// Cancels the plan with a message of its own. Only the proxy calls this, so the message has one writer.
void cancel(Guard& guard, pw_status why, const std::string& message);

/// Whether the plan was cancelled, by the host or by a wait that timed out.
inline bool cancelled(const Guard& guard) {
  return guard.stop.load(std::memory_order_relaxed) != 0 || guard.report.load(std::memory_order_relaxed) != 0;
}

/// PW_OK, or why the plan (or `object`) was cancelled, with the message.
pw_status status_of(const Guard& guard, const Team& team, const char* object = "plan");

}  // namespace pw
