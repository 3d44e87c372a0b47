#include "team/wait.h"

#include "base/format.h"

namespace pw {

int lost_of(const Team& team, int rank) {
  if (rank == PW_ANY_RANK) return team.any_lost();
  return team.lost(rank) ? rank : -1;
}

void refuse_lost(const Team& team, int rank) {
  if (team.lost(rank)) throw Error(PW_PEER_LOST, team.describe_loss(rank));
}

pw_status WaitFor::ended() const {
  if (const int lost = lost_of(team, rank); lost >= 0)
    return fail(PW_PEER_LOST, format("waiting for {}: {}", event, team.describe_loss(lost)));
  if (deadline_ns != PW_FOREVER && now_ns() >= deadline_ns)
    return fail(PW_TIMEOUT, format("waiting for {}: the timeout has passed", event));
  return PW_OK;
}

}  // namespace pw
