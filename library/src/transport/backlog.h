// The operations of one connection for which UCX or the NIC has no room at present, in order. They are
// continued later, so that a start never waits for room.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace pw {

class Backlog {
 public:
  /// Starts as much of an operation as there is room for, and sets `done` once all of it is started.
  using GoOn = std::function<pw_status(bool& done)>;

  [[nodiscard]] bool empty() const { return waiting_.empty(); }

  /// Adds an operation. `uses` lists the objects that it uses; drop() finds it by them.
  void add(GoOn go_on, std::vector<const void*> uses) {
    waiting_.push_back({std::move(go_on), std::move(uses)});
  }

  /// Continues operations as far as there is room. Returns how many ended, whether done or failed.
  uint64_t resume();

  /// Makes the operations that use this object fail when their turn comes.
  void drop(const void* used);
  void clear() { waiting_.clear(); }

  /// The first failure of an operation that waited here; outcome() reports it once.
  [[nodiscard]] bool failed() const { return failed_ != PW_OK; }
  pw_status outcome();

 private:
  struct Entry {
    GoOn go_on;  ///< empty if an object that the operation uses was closed
    std::vector<const void*> uses;
  };
  std::deque<Entry> waiting_;
  pw_status failed_ = PW_OK;
  std::string why_;
};

}  // namespace pw
