#include "path/marks.h"

#include <string>

namespace pw {

void Marks::add(Marker& marker, int rank) {
  if (const Mark mark = marker.mark(rank); mark != 0) all_.push_back({&marker, rank, mark});
}

bool Marks::reached() {
  while (open() && all_[reached_].of->reached(all_[reached_].rank, all_[reached_].mark)) ++reached_;
  return !open();
}

// Every failure is taken, so that none is told again, and the first is told.
pw_status Marks::outcome() {
  pw_status first = PW_OK;
  std::string message;
  for (const Entry& entry : all_) {
    const pw_status status = entry.of->outcome(entry.rank, entry.mark);
    if (status == PW_OK || first != PW_OK) continue;
    first = status;
    message = last_error_message();
  }
  all_.clear();
  reached_ = 0;
  return first == PW_OK ? PW_OK : fail(first, message);
}

Source* Marks::source() const { return open() ? all_[reached_].of->source() : nullptr; }

Wakes Marks::wakes() const {
  for (size_t i = reached_; i < all_.size(); ++i)
    if (const Wakes wakes = all_[i].of->wakes(all_[i].rank); wakes != Wakes::always) return wakes;
  return Wakes::always;
}

}  // namespace pw
