// What keeps one rank from going on with something collective must not leave the others waiting: it travels
// with what the ranks tell one another, and all of them end alike.
#pragma once

#include <exception>
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

/// Collective. What every rank tells, in rank order. Where some object, every rank throws Error: one that
/// objects its own, the others that of the first one, as "rank 2 cannot <do what>: ...". Each exchange ends
/// after the time of the setting `timeout`.
std::vector<Bytes> agree(Team& team, const Objection& objection, ByteView mine, const char* do_what);

/// The two halves of it, pure: a rank's part, and the parts of all as a rank with this objection takes them.
Bytes pack_part(const Objection& objection, ByteView mine);
std::vector<Bytes> open_parts(const std::vector<Bytes>& parts, const Objection& objection,
                              const char* do_what);

}  // namespace pw
