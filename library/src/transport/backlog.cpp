#include "transport/backlog.h"

#include <algorithm>
#include <utility>

namespace pw {

uint64_t Backlog::resume() {
  uint64_t ended = 0;
  for (; !waiting_.empty(); ++ended) {
    Entry& first = waiting_.front();
    bool done = false;
    pw_status status = PW_OK;
    if (first.go_on)
      status = catch_errors([&] { return first.go_on(done); });
    else
      status = fail(PW_STALE_KEY, "memory was closed before a transfer of it could be started; flush first");
    if (status == PW_OK && !done) return ended;
    if (status != PW_OK && failed_ == PW_OK) {
      failed_ = status;
      why_ = last_error_message();
    }
    waiting_.pop_front();
  }
  return ended;
}

void Backlog::drop(const void* used) {
  for (Entry& entry : waiting_)
    if (std::ranges::find(entry.uses, used) != entry.uses.end()) entry.go_on = nullptr;
}

pw_status Backlog::outcome() {
  const pw_status failed = std::exchange(failed_, PW_OK);
  return failed == PW_OK ? PW_OK : fail(failed, why_);
}

}  // namespace pw
