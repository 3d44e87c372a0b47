// Waiting for something that UCX brings.
#pragma once

#include <optional>

#include "base/format.h"
#include "base/status.h"
#include "path/ucx/engine.h"
#include "team/wait.h"

namespace pw::ucx {

template <typename Done>
pw_status Engine::wait_for(int rank, uint64_t deadline_ns, const char* what, Done&& done) {
  // Who sleeps leaves the work to the engine's own thread, which wakes it. A network card wakes nobody.
  std::optional<Polling> polling;
  Polled* const me[] = {this};
  if (!waiting_.economy()) polling.emplace(me);
  const auto closed = [&] { return closed_.load(std::memory_order_relaxed) != 0; };
  const pw_status status = wait_until(
      waiting_, {team_, rank, deadline_ns, what},
      [&] {
        if (polling) polling->turn();
        return done() || closed() || failed(rank);
      },
      [&] {
        rouse();
        return Wakes::perhaps;
      });
  if (status != PW_OK || done()) return status;
  if (failed(rank)) return failure(rank);
  return fail(PW_CLOSED, format("peerway: this context was closed while waiting for {}", what));
}

}  // namespace pw::ucx
