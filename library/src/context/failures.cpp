#include "context/failures.h"

#include "base/status.h"

namespace pw {

void Failures::note(int rank, pw_status status) {
  std::lock_guard lock(mutex_);
  Line& line = lines_[static_cast<size_t>(rank)];
  ++line.count;
  line.status = status;
  line.why = last_error_message();
  last_ = rank;
  all_.fetch_add(1, std::memory_order_release);
}

uint64_t Failures::count(int rank) const {
  if (rank == PW_ANY_RANK) return all_.load(std::memory_order_acquire);
  std::lock_guard lock(mutex_);
  return lines_[static_cast<size_t>(rank)].count;
}

pw_status Failures::outcome(Marks& marks) {
  return marks.outcome([this](int rank, pw_status status) { note(rank, status); });
}

pw_status Failures::since(int rank, uint64_t seen) const {
  if (count(rank) <= seen) return PW_OK;
  std::lock_guard lock(mutex_);
  const Line& line = lines_[static_cast<size_t>(rank == PW_ANY_RANK ? last_ : rank)];
  return fail(line.status, line.why);
}

pw_status Failures::flushed(int rank) {
  if (all_.load(std::memory_order_acquire) == 0) return PW_OK;
  std::lock_guard lock(mutex_);
  pw_status status = PW_OK;
  const auto take = [&](Line& line) {
    if (line.flushed != line.count && status == PW_OK) status = fail(line.status, line.why);
    line.flushed = line.count;
  };
  if (rank != PW_ANY_RANK)
    take(lines_[static_cast<size_t>(rank)]);
  else
    for (Line& line : lines_) take(line);
  return status;
}

}  // namespace pw
