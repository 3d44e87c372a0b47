// What a rank knows of its team's collectives: which it has begun, which messages have arrived for its
// exchanges, and which were aborted. Pure.
//
// All ranks make the same collective calls in the same order, so a number names the same call everywhere.
// An exchange among some ranks has a number of its own set: kOfSome, a hash of the ranks, and a count.
// Messages to an exchange that this rank has not begun are kept for it. Aborts are kept as long as the
// team, also those of exchanges that are over here or still to begin, because others may learn of them from
// this rank.
//
// A program may break the rule, for example if one rank repeats a call that failed and another goes on. So
// each message says which call it belongs to, and how many collectives its sender had begun before in which
// the receiver takes part too. If the receiver made another call at that place, the two calls conflict.
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

class CollectiveLog {
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
    std::vector<Conflict> conflicts;  ///< with messages that have come before
  };

  /// This rank begins a collective of all ranks. An exchange is open from now on.
  Beginning begin(const CollectiveCall& call);
  /// The same for an exchange of these ranks alone, in any order.
  Beginning begin_among(Collective kind, std::vector<int> ranks);
  void end(uint64_t number);
  /// Whether this rank is in the exchange.
  [[nodiscard]] bool holds(uint64_t number) const;

  /// The fields of a message of this rank, without its data.
  [[nodiscard]] wire::ExchangePart header_to(int rank, uint64_t number) const;
  /// The call of this rank that conflicts with a message, if there is one.
  [[nodiscard]] std::optional<Conflict> conflict_with(int from, const wire::ExchangePart& part) const;

  /// Makes these ranks partners: this rank sends to them and waits for their messages.
  void address(uint64_t number, const std::vector<int>& ranks);
  /// All partners so far, including ranks that have sent to this one first.
  [[nodiscard]] std::vector<int> partners(uint64_t number) const;
  /// Keeps a message. False if it must be refused: the exchange has ended here, or the sender is no partner
  /// and the first round is over. A message to an aborted exchange is dropped; its sender learns of the
  /// abort anyway.
  bool accept(int from, const wire::ExchangePart& part);
  /// The ranks among `ranks` whose next message has not arrived.
  [[nodiscard]] std::vector<int> missing(uint64_t number, const std::vector<int>& ranks) const;
  /// The next message of each, in rank order; in the first round also those of other ranks.
  PeerMessages take(uint64_t number, const std::vector<int>& ranks);

  /// Records that some rank has ended it for all. False if that is known.
  bool abort(uint64_t number, const Error& why);
  /// Records that a partner refuses this rank's messages, which no other rank knows.
  void refuse(uint64_t number, const Error& why);
  [[nodiscard]] bool ended(uint64_t number) const;
  /// Throws what has ended it: AbortedElsewhere, or Error if only this rank was refused. Does nothing if it
  /// goes on.
  void check(uint64_t number) const;
  /// Calls once when some rank aborts, or at once if one has.
  void on_abort(uint64_t number, std::function<void(const Error&)> call);
  [[nodiscard]] const std::map<uint64_t, Error>& aborts() const { return aborts_; }

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
  struct Claim {  ///< what a message that came early says about its sender's call
    Collective kind;
    uint64_t place;
  };
  struct OpenExchange {
    Collective kind = Collective::barrier;
    Place place{};
    std::map<int, Claim> claims{};  ///< by sender, until this rank begins it
    std::set<int> partners{};
    std::map<int, std::deque<Bytes>> messages{};  ///< by sender
    bool past_first = false;                      ///< exchange
    std::optional<Error> refused{};
    std::function<void(const Error&)> on_abort{};
  };
  /// Null if it has ended here. Makes an entry for one still to begin.
  OpenExchange* find(uint64_t number);
  Beginning begin(Begun call);
  [[nodiscard]] std::vector<Conflict> early_conflicts(const Begun& call) const;
  [[nodiscard]] const Begun* begun_at(int rank, uint64_t place) const;

  static constexpr int kCountBits = 24;  ///< of a number of a set: its low bits
  static constexpr size_t kRemembered = 256;
  [[nodiscard]] uint64_t next_of(uint64_t number) const;

  std::map<uint64_t, uint64_t> next_among_;  ///< by a set's first number
  std::map<uint64_t, OpenExchange> open_;
  std::set<uint64_t> early_;          ///< those in open_ that this rank has not begun
  std::map<uint64_t, Error> aborts_;  ///< the first to each collective that has failed
  uint64_t next_ = 0;
  Place next_place_;
  std::deque<Begun> begun_;  ///< the last of them
};

}  // namespace pw
