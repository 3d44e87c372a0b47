// A plan's guard: through it the host ends the plan's waits wherever they are, and learns which waits ended
// early.
#pragma once

#include <memory>
#include <string>

#include "base/setting.h"
#include "device/device.h"
#include "device/program.h"
#include "memory/words.h"
#include "team/team.h"

namespace pw {
namespace settings {

extern const SecondsSetting plan_timeout;

}  // namespace settings

/// Zero-filled host memory, pinned for the device. Throws Error.
std::shared_ptr<void> pinned_memory(Device& device, uint64_t bytes);

/// One page of it, and a word of the pool for device code; the pool must outlive the guard. Throws Error.
std::shared_ptr<Guard> make_guard(Device& device, WordPool& words, uint64_t timeout_ns);

/// Ends all waits of the plan. The first reason counts.
void cancel(Guard& guard, pw_status why, int rank);
/// The same if the rank, or any that PW_ANY_RANK stands for, is lost. A caller that asks for a status may
/// know of a loss from another call before the team's thread has told the guard.
void cancel_if_lost(Guard& guard, const Team& team, int rank);

/// Whom the guard names, read from the words in which waits and the host tell of their end.
struct Ended {
  pw_status why = PW_OK;  ///< PW_TIMEOUT: a wait did; any other: the host did
  int rank = -1;          ///< that was waited for, or was lost
  uint64_t of = 0;        ///< the epoch or value that was waited for, 32 bits of it
};
Ended end_of(const Guard& guard);

/// The words by which waits on the device see the guard.
pw_guard seen_by(Device& device, const Guard& guard, uint64_t timeout_ns);

/// The same with a message of its own. Only the proxy calls this.
void cancel(Guard& guard, pw_status why, const std::string& message);

/// Whether the plan does nothing any more.
inline bool cancelled(const Guard& guard) {
  return guard.stop.load(std::memory_order_relaxed) != 0 || guard.report.load(std::memory_order_relaxed) != 0;
}

/// PW_OK, or why the plan (or `object`) was cancelled, with the message.
pw_status status_of(const Guard& guard, const Team& team, const char* object = "plan");

}  // namespace pw
