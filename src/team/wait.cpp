#include "team/wait.h"

#include "base/format.h"

namespace pw {

pw_status WaitFor::ended() const {
  const int lost = rank == PW_ANY_RANK ? team.any_lost() : (team.lost(rank) ? rank : -1);
  if (lost >= 0)
    return fail(PW_PEER_LOST, format("peerway: waiting for {}: {}", what, team.describe_loss(lost)));
  if (deadline_ns != PW_FOREVER && now_ns() >= deadline_ns)
    return fail(PW_TIMEOUT, format("peerway: waiting for {}: the timeout has passed", what));
  return PW_OK;
}

}  // namespace pw
