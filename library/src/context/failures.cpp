#include "context/failures.h"

#include "base/status.h"

namespace pw {

void Failures::record(int rank, pw_status status) {
  std::lock_guard lock(mutex_);
  RankFailures& failures = by_rank_[static_cast<size_t>(rank)];
  ++failures.count;
  failures.status = status;
  failures.why = last_error_message();
  last_ = rank;
  all_.fetch_add(1, std::memory_order_release);
}

uint64_t Failures::count(int rank) const {
  if (rank == PW_ANY_RANK) return all_.load(std::memory_order_acquire);
  std::lock_guard lock(mutex_);
  return by_rank_[static_cast<size_t>(rank)].count;
}

pw_status Failures::outcome(Marks& marks) {
  return marks.outcome([this](int rank, pw_status status) { record(rank, status); });
}

pw_status Failures::since(int rank, uint64_t seen) const {
  if (count(rank) <= seen) return PW_OK;
  std::lock_guard lock(mutex_);
  const RankFailures& failures = by_rank_[static_cast<size_t>(rank == PW_ANY_RANK ? last_ : rank)];
  return fail(failures.status, failures.why);
}

pw_status Failures::take_for_flush(int rank) {
  if (all_.load(std::memory_order_acquire) == 0) return PW_OK;
  std::lock_guard lock(mutex_);
  pw_status status = PW_OK;
  const auto take = [&](RankFailures& failures) {
    if (failures.flushed != failures.count && status == PW_OK) status = fail(failures.status, failures.why);
    failures.flushed = failures.count;
  };
  if (rank != PW_ANY_RANK)
    take(by_rank_[static_cast<size_t>(rank)]);
  else
    for (RankFailures& failures : by_rank_) take(failures);
  return status;
}

}  // namespace pw
