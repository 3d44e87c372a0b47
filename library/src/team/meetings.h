// A rank's book of its meetings: which letters have come, from whom, and which meetings were ended by an
// objection. Pure.
//
// All ranks hold the same meetings in the same order, so that a number names one everywhere. Some ranks may
// hold meetings of their own: each set of ranks counts those apart, and their numbers have kAmong and a hash
// of the set in them. Letters of one that this rank has not begun are kept for it. Objections are kept for as
// long as the team is, also those to meetings that are over here or still to begin: this rank may be the one
// that others hear of them from.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "team/team.h"

namespace pw {

class Meetings {
 public:
  /// The number of the next one.
  uint64_t begin();
  /// The same for one of these ranks alone, in any order.
  uint64_t begin_among(std::vector<int> ranks);
  void end(uint64_t number);

  /// This rank writes to these, and waits for what they write.
  void address(uint64_t number, const std::vector<int>& ranks);
  /// All of them so far: also those that have written to this rank unasked.
  [[nodiscard]] std::vector<int> partners(uint64_t number) const;
  /// False where the letter is to be refused: the meeting has ended here, or the rank is no partner and the
  /// first exchange is over. Who writes to one that an objection has ended hears of that anyway.
  bool letter(int from, uint64_t number, ByteView text);
  /// Those of `ranks` whose next letter has not come.
  [[nodiscard]] std::vector<int> missing(uint64_t number, const std::vector<int>& ranks) const;
  /// The next letter of each, in the order of the ranks; in the first exchange those of other ranks, too.
  Letters take(uint64_t number, const std::vector<int>& ranks);

  /// Some rank ended it for all. False when it is no news.
  bool object(uint64_t number, const Error& why);
  /// A partner takes none of this rank's letters; nobody else knows.
  void refuse(uint64_t number, const Error& why);
  [[nodiscard]] bool ended(uint64_t number) const;
  /// Throws what has ended it, if anything has: OtherObjected, or Error where this rank alone was told.
  void check(uint64_t number) const;
  /// Called once when some rank objects, or at once when one has.
  void on_objection(uint64_t number, std::function<void(const Error&)> call);
  [[nodiscard]] const std::map<uint64_t, Error>& objections() const { return objections_; }

 private:
  struct Meeting {
    std::set<int> partners;
    std::map<int, std::deque<Bytes>> letters;  ///< by sender
    bool past_first = false;                   ///< exchange
    std::optional<Error> refused;
    std::function<void(const Error&)> on_objection;
  };
  /// Null where it has ended here. Makes one that is still to begin.
  Meeting* find(uint64_t number);

  static constexpr uint64_t kAmong = uint64_t{1} << 63;
  static constexpr int kCountBits = 24;  ///< of a number of a set: its low bits
  [[nodiscard]] uint64_t next_of(uint64_t number) const;

  std::map<uint64_t, uint64_t> next_among_;  ///< by a set's first number
  std::map<uint64_t, Meeting> open_;
  std::map<uint64_t, Error> objections_;  ///< the first to each meeting that has failed
  uint64_t next_ = 0;
};

}  // namespace pw
