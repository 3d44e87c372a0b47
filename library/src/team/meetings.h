// A rank's book of its collectives: which it has begun, which letters have come for its meetings, and which
// were ended by an objection. Pure.
//
// All ranks make the same collective calls in the same order, so that a number names one everywhere. Some
// ranks may hold meetings of their own: each set of ranks counts those apart, and their numbers have kOfSome
// and a hash of the set in them. Letters of one that this rank has not begun are kept for it. Objections are
// kept for as long as the team is, also those to meetings that are over here or still to begin: this rank may
// be the one that others hear of them from.
//
// A program may break the rule, for example where one rank repeats a call that failed and another goes on. So
// each letter says which call it belongs to, and how many collectives its sender had begun before together
// with the rank that it goes to. Where this rank is in another call at that place, the two conflict.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "team/collective.h"
#include "team/message.h"
#include "team/team.h"

namespace pw {

class Meetings {
 public:
  /// Two ranks are in different collectives.
  struct Conflict {
    uint64_t number;  ///< of this rank's call; then of the other rank's
    CollectiveCall call;
    int other;
    uint64_t other_number;
    CollectiveCall other_call;
  };
  struct Beginning {
    uint64_t number;
    std::vector<Conflict> conflicts;  ///< with letters that have come before
  };

  /// This rank begins a collective of all ranks. A meeting is open from now on.
  Beginning begin(const CollectiveCall& call);
  /// The same for a meeting of these ranks alone, in any order.
  Beginning begin_among(Collective kind, std::vector<int> ranks);
  void end(uint64_t number);
  /// Whether it is a meeting that this rank is in.
  [[nodiscard]] bool holds(uint64_t number) const;

  /// What a letter of this rank says before its text.
  [[nodiscard]] wire::Letter letter_to(int rank, uint64_t number) const;
  /// The call of this rank that a letter does not go with, if there is one.
  [[nodiscard]] std::optional<Conflict> conflict_with(int from, const wire::Letter& letter) const;

  /// This rank writes to these, and waits for what they write.
  void address(uint64_t number, const std::vector<int>& ranks);
  /// All of them so far: also those that have written to this rank unasked.
  [[nodiscard]] std::vector<int> partners(uint64_t number) const;
  /// False where the letter is to be refused: the meeting has ended here, or the rank is no partner and the
  /// first exchange is over. Who writes to one that an objection has ended hears of that anyway.
  bool letter(int from, const wire::Letter& letter);
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
  /// How many collectives a rank has begun before one.
  struct Place {
    uint64_t of_all = 0;
    std::map<int, uint64_t> of_some{};  ///< by rank that took part
    [[nodiscard]] uint64_t with(int rank) const;
  };
  struct Begun {
    uint64_t number;
    CollectiveCall call;
    Place place;
    std::vector<int> among;  ///< empty: all ranks
    [[nodiscard]] bool includes(int rank) const;
  };
  struct Claim {  ///< of a letter that came early
    Collective kind;
    uint64_t place;
  };
  struct Meeting {
    Collective kind{};
    Place place{};
    std::map<int, Claim> claims{};  ///< by sender, until this rank begins it
    std::set<int> partners{};
    std::map<int, std::deque<Bytes>> letters{};  ///< by sender
    bool past_first = false;                     ///< exchange
    std::optional<Error> refused{};
    std::function<void(const Error&)> on_objection{};
  };
  /// Null where it has ended here. Makes one that is still to begin.
  Meeting* find(uint64_t number);
  Beginning begin(Begun call);
  [[nodiscard]] std::vector<Conflict> early_conflicts(const Begun& call) const;
  [[nodiscard]] const Begun* begun_at(int rank, uint64_t place) const;

  static constexpr int kCountBits = 24;  ///< of a number of a set: its low bits
  static constexpr size_t kRemembered = 256;
  [[nodiscard]] uint64_t next_of(uint64_t number) const;

  std::map<uint64_t, uint64_t> next_among_;  ///< by a set's first number
  std::map<uint64_t, Meeting> open_;
  std::set<uint64_t> early_;              ///< those in open_ that this rank has not begun
  std::map<uint64_t, Error> objections_;  ///< the first to each collective that has failed
  uint64_t next_ = 0;
  Place next_place_;
  std::deque<Begun> begun_;  ///< the last of them
};

}  // namespace pw
