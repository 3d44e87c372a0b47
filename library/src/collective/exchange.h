// The exchange of the ranks that make one collective.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "team/agreement.h"
#include "team/team.h"

namespace pw::collective {

/// Returns the group with these ranks, or that of all ranks if `ranks` is null. Throws Error unless they are
/// a group of the team with this rank in it.
std::vector<int32_t> group_of(const Team& team, const int* ranks, size_t count);

/// Collective in the group, as run_exchange(): `body(exchange)` is this rank's part, and an exception in it
/// ends the exchange at all ranks of the group. A group of as many ranks as the team has takes part as the
/// whole team.
template <typename Body>
std::unique_ptr<Exchange> run_exchange_of(Team& team, const std::vector<int32_t>& group, Body&& body) {
  if (group.size() == static_cast<size_t>(team.size()))
    return run_exchange(team, CallKind::collective, std::forward<Body>(body));
  constexpr auto kind = CallKind::collective_among;
  return run_exchange(team, team.begin_exchange_among(kind, group), kind, std::forward<Body>(body));
}

}  // namespace pw::collective
