// Operations for which a connection has no room at present, in order, so that a start never waits for room.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace pw {

class Backlog {
 public:
  /// Does what there is room for, and sets `done` once that was all.
  using GoOn = std::function<pw_status(bool& done)>;

  [[nodiscard]] bool empty() const { return waiting_.empty(); }

  /// `uses`: the objects by which drop() finds it while it waits.
  void add(GoOn go_on, std::vector<const void*> uses) {
    waiting_.push_back({std::move(go_on), std::move(uses)});
  }

  /// Goes on as far as there is room, and returns how many ended, done or failed.
  uint64_t resume();

  /// Operations that use this end as a failure when their turn comes.
  void drop(const void* used);
  void clear() { waiting_.clear(); }

  /// The first failure of what waited here, told once.
  [[nodiscard]] bool failed() const { return failed_ != PW_OK; }
  pw_status outcome();

 private:
  struct Entry {
    GoOn go_on;  ///< none: what it uses is closed
    std::vector<const void*> uses;
  };
  std::deque<Entry> waiting_;
  pw_status failed_ = PW_OK;
  std::string why_;
};

}  // namespace pw
