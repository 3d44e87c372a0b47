// Lets a rank that cannot go on with a collective call abort it, so that the others do not wait. The rank
// sends its error with the data that ranks exchange, and all ranks end with that error.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "team/team.h"

namespace pw {

/// Converts the exception to an Error. Errors of Peerway and std::bad_alloc keep their status.
Error error_of(const std::exception_ptr& exception);

/// Why this rank cannot go on; empty if it can. The next agree() sends it to the others.
using AbortReason = std::optional<Error>;

/// Runs `body` unless there is a reason already. An exception of any type becomes the reason.
template <typename Body>
void attempt(AbortReason& abort_reason, Body&& body) {
  if (abort_reason) return;
  try {
    body();
  } catch (...) {
    abort_reason = error_of(std::current_exception());
  }
}

/// Collective over the ranks that make a context. Returns each rank's data, in rank order. If some ranks have
/// a reason, every rank throws Error: a rank with a reason throws its own, the others throw that of the first
/// such rank, as "rank 2 cannot make its context: ...". The setting `timeout` limits the time.
std::vector<Bytes> agree(Team& team, const AbortReason& abort_reason, ByteView mine);

/// The error that the other ranks get when this rank aborts. Pure.
Error abort_reason_for(const Error& own, int rank, const char* do_what);

/// Aborts the exchange with this rank's error and throws it. If another rank has aborted before, this
/// throws that rank's error, which may be why this rank failed.
[[noreturn]] void abort_exchange(Exchange& exchange, const Error& own, int rank, const char* do_what);

/// Collective. `body(exchange)` is this rank's part; each rank talks only to its partners, and a rank without
/// partners returns as soon as its body does. An exception of any type aborts the exchange at all ranks at
/// once, as "rank 2 cannot prepare its plan: ...". A rank that had received all its messages may have
/// returned by then. It learns of the abort by on_abort(), as long as it keeps the exchange that this
/// returns.
template <typename Body>
std::unique_ptr<Exchange> run_exchange(Team& team, std::unique_ptr<Exchange> exchange, CallKind kind,
                                       Body&& body) {
  try {
    body(*exchange);
  } catch (const AbortedElsewhere&) {
    throw;
  } catch (...) {
    abort_exchange(*exchange, error_of(std::current_exception()), team.rank(), action_of(kind));
  }
  return exchange;
}
/// The same, in a new exchange of all ranks.
template <typename Body>
std::unique_ptr<Exchange> run_exchange(Team& team, CallKind kind, Body&& body) {
  return run_exchange(team, team.begin_exchange(kind), kind, std::forward<Body>(body));
}

/// Throws Error unless the ranks are a group of the team with this rank in it. `action` says what they are
/// for: "a plan is to be prepared". Call it before an exchange among them is begun: no other rank can be in
/// an exchange of a wrong list.
void check_group(const Team& team, std::span<const int> ranks, const char* action);

/// The message from that rank; empty if there is none. Pure.
ByteView message_of(const PeerMessages& messages, int rank);

/// The two halves of agree(), pure: packs this rank's part; unpacks the parts of all ranks, at a rank with
/// this reason.
Bytes pack_part(const AbortReason& abort_reason, ByteView mine);
std::vector<Bytes> open_parts(const std::vector<Bytes>& parts, const AbortReason& abort_reason,
                              const char* do_what);

}  // namespace pw
