// Waits for something that UCX delivers.
#pragma once

#include "base/format.h"
#include "base/status.h"
#include "transport/ucx/engine.h"

namespace pw::ucx {

template <typename Done>
pw_status UcxEngine::wait_for(int rank, uint64_t deadline_ns, const char* awaited, Done&& done) {
  const auto closed = [&] { return closed_.load(std::memory_order_relaxed) != 0; };
  // A NIC wakes nobody, so the wait polls or naps.
  const pw_status status = progress_.wait(
      {team_, rank, deadline_ns, awaited}, this, [&] { return done() || closed() || failed(rank); },
      Wakes::perhaps);
  if (status != PW_OK || done()) return status;
  if (failed(rank)) return failure(rank);
  return fail(PW_CLOSED, format("this context was closed while waiting for {}", awaited));
}

}  // namespace pw::ucx
