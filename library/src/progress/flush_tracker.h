// Counts the operations towards one rank, and knows up to which of them all are complete. A network does not
// report the end of each operation at the peer. It can only be flushed: the flush ends once everything that
// was started before it is in place, and one flush is under way at a time. The owner starts the flushes, such
// as a flush of UCX or the get of a marker behind a NIC's puts; this class only counts. The owner holds the
// lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "progress/mark.h"

namespace pw {

class FlushTracker {
 public:
  /// One more operation was accepted; it may still wait for room.
  void accept() { ++accepted_; }
  /// The next `more` accepted operations were given to the network.
  void issue(uint64_t more = 1) { issued_ += more; }

  /// Returns a mark after everything accepted so far, and asks for a flush of it.
  Mark want() { return wanted_ = accepted_; }
  /// Whether the last mark asked for is not reached yet.
  [[nodiscard]] bool wanting() const { return wanted_ > complete_; }
  [[nodiscard]] Mark accepted() const { return accepted_; }
  [[nodiscard]] bool all_complete() const { return complete_ == accepted_; }
  [[nodiscard]] bool reached(Mark mark) const { return complete_ >= mark; }

  [[nodiscard]] bool under_way() const { return flushing_ != 0; }
  /// Whether a flush must begin: one is wanted, none is under way, and all that it must cover was issued.
  [[nodiscard]] bool due() const { return wanting() && !under_way() && issued_ >= wanted_; }
  /// Begins a flush of everything issued so far. Operations issued from now on belong to the next one.
  void begin() { flushing_ = issued_; }
  void end() { complete_ = std::max(complete_, std::exchange(flushing_, 0)); }
  /// The flush could not begin for lack of room: it is due again.
  void put_off() { flushing_ = 0; }
  /// No flush is possible any more: treats what is wanted as complete.
  void give_up() {
    flushing_ = 0;
    complete_ = std::max(complete_, wanted_);
  }

 private:
  uint64_t accepted_ = 0;  ///< number of operations accepted
  uint64_t issued_ = 0;    ///< number of these issued
  uint64_t wanted_ = 0;    ///< number of these up to the last mark asked for
  uint64_t complete_ = 0;  ///< number of these that are complete or have failed
  uint64_t flushing_ = 0;  ///< number of these that the flush under way covers; 0: there is none
};

}  // namespace pw
