// Up to which operation everything started towards one rank is proven complete, if the only proofs are of
// "everything before this", one at a time: a flush of UCX, a marker behind a NIC's puts. Pure; the owner
// holds the lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "progress/mark.h"

namespace pw {

class Proofs {
 public:
  /// One more operation, which may still wait for room.
  void accept() { ++accepted_; }
  /// `more` further accepted operations were given to the network.
  void issue(uint64_t more = 1) { issued_ += more; }

  /// A mark after all accepted operations, which will now be proven.
  Mark want() { return wanted_ = accepted_; }
  /// Whether something that is wanted is not proven yet.
  [[nodiscard]] bool wanting() const { return wanted_ > complete_; }
  [[nodiscard]] Mark accepted() const { return accepted_; }
  [[nodiscard]] bool all_complete() const { return complete_ == accepted_; }
  [[nodiscard]] bool reached(Mark mark) const { return complete_ >= mark; }

  [[nodiscard]] bool under_way() const { return proving_ != 0; }
  /// Whether to begin a proof: one is wanted, none is under way, and all operations that it must prove were
  /// issued.
  [[nodiscard]] bool due() const { return wanting() && !under_way() && issued_ >= wanted_; }
  /// Begins a proof of all that was issued so far. Operations issued from here on belong to the next one.
  void begin() { proving_ = issued_; }
  void end() { complete_ = std::max(complete_, std::exchange(proving_, 0)); }
  /// The proof could not begin because the NIC's queue is full: it is due again.
  void put_off() { proving_ = 0; }
  /// No proof will come any more; nothing is awaited.
  void give_up() {
    proving_ = 0;
    complete_ = std::max(complete_, wanted_);
  }

 private:
  uint64_t accepted_ = 0;  ///< operations accepted; the others count how many of these, from the first on:
  uint64_t issued_ = 0;    ///< were issued
  uint64_t wanted_ = 0;    ///< are to be proven complete
  uint64_t complete_ = 0;  ///< are complete, or have failed
  uint64_t proving_ = 0;   ///< will be proven by the proof under way; 0: there is none
};

}  // namespace pw
