#include "transport/marks.h"

namespace pw {

void Marks::add(Marker& marker, int rank) {
  if (const Mark mark = marker.mark(rank); mark != 0) all_.push_back({&marker, rank, mark});
}

bool Marks::reached() {
  while (open() && all_[reached_].marker->reached(all_[reached_].rank, all_[reached_].mark)) ++reached_;
  return !open();
}

Source* Marks::source() const { return open() ? all_[reached_].marker->source() : nullptr; }

Wakes Marks::wakes() const {
  for (size_t i = reached_; i < all_.size(); ++i)
    if (const Wakes wakes = all_[i].marker->wakes(all_[i].rank); wakes != Wakes::always) return wakes;
  return Wakes::always;
}

}  // namespace pw
