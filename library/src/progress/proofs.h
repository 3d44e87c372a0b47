// Tracks up to which operation everything started towards one rank is proven complete. The only proofs
// available are of "everything before this", one at a time, such as a flush of UCX or a get behind a NIC's
// puts. This is pure bookkeeping; the owner holds the lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "progress/mark.h"

namespace pw {

class Proofs {
 public:
  /// One more operation was accepted; it may still wait for room.
  void accept() { ++accepted_; }
  /// The next `more` accepted operations were given to the network.
  void issue(uint64_t more = 1) { issued_ += more; }

  /// Returns a mark after everything accepted so far, and asks for a proof of it.
  Mark want() { return wanted_ = accepted_; }
  /// Whether something is wanted that is not proven yet.
  [[nodiscard]] bool wanting() const { return wanted_ > complete_; }
  [[nodiscard]] Mark accepted() const { return accepted_; }
  [[nodiscard]] bool all_complete() const { return complete_ == accepted_; }
  [[nodiscard]] bool reached(Mark mark) const { return complete_ >= mark; }

  [[nodiscard]] bool under_way() const { return proving_ != 0; }
  /// Whether a proof must begin: one is wanted, none is under way, and all that it must cover was issued.
  [[nodiscard]] bool due() const { return wanting() && !under_way() && issued_ >= wanted_; }
  /// Begins a proof of everything issued so far. Operations issued from now on belong to the next one.
  void begin() { proving_ = issued_; }
  void end() { complete_ = std::max(complete_, std::exchange(proving_, 0)); }
  /// The proof could not begin for lack of room: it is due again.
  void put_off() { proving_ = 0; }
  /// No proof is possible any more: treats what is wanted as complete.
  void give_up() {
    proving_ = 0;
    complete_ = std::max(complete_, wanted_);
  }

 private:
  uint64_t accepted_ = 0;  ///< number of operations accepted
  uint64_t issued_ = 0;    ///< number of these issued
  uint64_t wanted_ = 0;    ///< number of these that must be proven complete
  uint64_t complete_ = 0;  ///< number of these that are complete or have failed
  uint64_t proving_ = 0;   ///< number of these that the proof under way covers; 0: there is none
};

}  // namespace pw
