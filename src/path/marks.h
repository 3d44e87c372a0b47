// Marks of several paths and ranks as one thing: all that was started there, to be looked at or waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/waiting.h"
#include "progress/mark.h"
#include "progress/source.h"

namespace pw {

class Path;

class Marks {
 public:
  /// Adds what the path was given towards the rank so far. Nothing waits.
  void add(Path& path, int rank);

  /// Whether all of it is complete at both ends, or has failed.
  bool reached();

  /// Once reached() has said so: PW_OK, or the first failure, with its message. Clears the marks.
  pw_status outcome();

  /// The first that is not reached yet: its rank, and the source that brings it, if any.
  [[nodiscard]] int rank() const { return open() ? all_[reached_].rank : -1; }
  [[nodiscard]] Source* source() const;
  /// Whether all that is waited for wakes this rank's threads.
  [[nodiscard]] Wakes wakes() const;

 private:
  struct Entry {
    Path* path;
    int rank;
    Mark mark;
  };
  [[nodiscard]] bool open() const { return reached_ < all_.size(); }

  std::vector<Entry> all_;
  size_t reached_ = 0;  ///< the first so many
};

}  // namespace pw
