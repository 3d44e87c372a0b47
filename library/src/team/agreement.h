// If one rank cannot go on with a collective, the others must not wait for it: the failure travels with the
// data that ranks exchange, and all of them end with it.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "team/team.h"

namespace pw {

/// The exception as an Error: one of memory that is not there, or of Peerway's own, keeps its status.
Error error_of(const std::exception_ptr& exception);

/// Why this rank does not go on; the others hear it at the next agree().
using Objection = std::optional<Error>;

/// Runs `body`, unless the rank objects already; what it throws, of whatever type, is the objection.
template <typename Body>
void attempt(Objection& objection, Body&& body) {
  if (objection) return;
  try {
    body();
  } catch (...) {
    objection = error_of(std::current_exception());
  }
}

/// Collective, of ranks that make a context: what each rank gives, in rank order. Where some object, every
/// rank throws Error: one that objects its own, the others that of the first one, as "rank 2 cannot make its
/// context: ...". Each exchange ends after the time of the setting `timeout`.
std::vector<Bytes> agree(Team& team, const Objection& objection, ByteView mine);

/// What the other ranks are told of an objection. Pure.
Error objection_of(const Error& own, int rank, const char* do_what);

/// Ends the meeting with this rank's error, and throws it; where another rank has ended it before, throws
/// what that one said, because it may be why this rank failed.
[[noreturn]] void end_meeting(Meeting& meeting, const Error& own, int rank, const char* do_what);

/// A meeting: `body(meeting)` is this rank's part of it. Collective, but each rank talks to its partners
/// alone; who has none returns as soon as its body does. What the body throws, of whatever type, ends the
/// meeting at all ranks at once, as "rank 2 cannot prepare its plan: ...". A rank whose partners had all they
/// wanted before may have returned; it hears of it by on_objection(), for as long as it keeps the meeting
/// that this returns.
template <typename Body>
std::unique_ptr<Meeting> hold(Team& team, std::unique_ptr<Meeting> meeting, Collective kind, Body&& body) {
  try {
    body(*meeting);
  } catch (const OtherObjected&) {
    throw;
  } catch (...) {
    end_meeting(*meeting, error_of(std::current_exception()), team.rank(), action_of(kind));
  }
  return meeting;
}
/// The same in a new meeting of all ranks.
template <typename Body>
std::unique_ptr<Meeting> hold(Team& team, Collective kind, Body&& body) {
  return hold(team, team.meet(kind), kind, std::forward<Body>(body));
}

/// The letter of that rank; empty where there is none. Pure.
ByteView letter_of(const Letters& letters, int rank);

/// The two halves of agree(), pure: a rank's part, and the parts of all as a rank with this objection takes
/// them.
Bytes pack_part(const Objection& objection, ByteView mine);
std::vector<Bytes> open_parts(const std::vector<Bytes>& parts, const Objection& objection,
                              const char* do_what);

}  // namespace pw
