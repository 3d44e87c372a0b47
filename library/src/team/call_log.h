// A rank's knowledge of its team's collective calls: which it has begun, which messages have arrived for its
// exchanges, and which were aborted. Pure.
//
// All ranks make the same collective calls in the same order, so a number names the same call everywhere.
// An exchange among some ranks has a number of its own set: kOfSome, a hash of the ranks, and a count.
// Messages to an exchange that this rank has not begun are kept for it. Aborts are kept as long as the
// team, also those of exchanges that are over here or still to begin, because others may learn of them from
// this rank.
//
// A program may break the rule, for example if one rank repeats a call that failed and another goes on. So
// each message says which call it belongs to, and how many collective calls its sender had begun before in
// which the receiver takes part too. If the receiver made another call at that place, the two calls conflict.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "team/call_kinds.h"
#include "team/message.h"
#include "team/team.h"

namespace pw {

class CallLog {
 public:
  /// Two ranks that are in different calls.
  struct Conflict {
    uint64_t number;  ///< number of this rank's call; the other rank's follows
    CollectiveCall call;
    int other;
    uint64_t other_number;
    CollectiveCall other_call;
  };
  struct Beginning {
    uint64_t number;
    std::vector<Conflict> conflicts;  ///< conflicts with messages that have arrived before
  };

  /// This rank begins a collective call of all ranks. If it is an exchange, it is open from now on.
  Beginning begin(const CollectiveCall& call);
  /// The same for an exchange of these ranks alone, in any order.
  Beginning begin_among(CallKind kind, std::vector<int> ranks);
  void end(uint64_t number);
  /// Whether this rank is in the exchange.
  [[nodiscard]] bool holds(uint64_t number) const;

  /// Returns the fields of a message of this rank, without its data.
  [[nodiscard]] wire::ExchangePart header_to(int rank, uint64_t number) const;
  /// The call of this rank that conflicts with a message, if there is one.
  [[nodiscard]] std::optional<Conflict> conflict_with(int from, const wire::ExchangePart& part) const;

  /// Makes these ranks partners: this rank sends to them and waits for their messages.
  void address(uint64_t number, const std::vector<int>& ranks);
  /// Returns all partners so far, including ranks that sent to this one first.
  [[nodiscard]] std::vector<int> partners(uint64_t number) const;
  /// Keeps a message. Returns false if it must be refused: the exchange has ended here, or the sender is not
  /// a partner and the first round is over. A message to an aborted exchange is dropped; its sender learns of
  /// the abort anyway.
  bool accept(int from, const wire::ExchangePart& part);
  /// Returns the ranks among `ranks` whose next message has not arrived.
  [[nodiscard]] std::vector<int> missing(uint64_t number, const std::vector<int>& ranks) const;
  /// Returns the next message of each rank, in rank order; in the first round also messages of other ranks.
  PeerMessages take(uint64_t number, const std::vector<int>& ranks);

  /// Records that some rank has aborted the exchange for all. Returns false if that is known already.
  bool abort(uint64_t number, const Error& why);
  /// Records that a partner refuses this rank's messages; no other rank knows that.
  void refuse(uint64_t number, const Error& why);
  [[nodiscard]] bool ended(uint64_t number) const;
  /// Throws the error that ended the exchange: AbortedElsewhere, or Error if only this rank was refused. Does
  /// nothing if the exchange continues.
  void check(uint64_t number) const;
  /// Calls `call` once when some rank aborts, or at once if one has aborted.
  void on_abort(uint64_t number, std::function<void(const Error&)> call);
  [[nodiscard]] const std::map<uint64_t, Error>& aborts() const { return aborts_; }

 private:
  /// How many collective calls a rank had begun before a given one.
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
  struct Claim {  ///< what an early message says about its call
    CallKind kind;
    uint64_t place;
  };
  struct OpenExchange {
    CallKind kind = CallKind::barrier;
    Place place{};
    std::map<int, Claim> claims{};  ///< by sender, until this rank begins the exchange
    std::set<int> partners{};
    std::map<int, std::deque<Bytes>> messages{};  ///< by sender
    bool past_first = false;                      ///< the first round is over
    std::optional<Error> refused{};
    std::function<void(const Error&)> on_abort{};
  };
  /// Returns null if the exchange has ended here. Makes an entry for one that has not begun.
  OpenExchange* find(uint64_t number);
  Beginning begin(Begun call);
  [[nodiscard]] std::vector<Conflict> early_conflicts(const Begun& call) const;
  [[nodiscard]] const Begun* begun_at(int rank, uint64_t place) const;

  static constexpr int kCountBits = 24;  ///< the low bits of a number count within its set
  static constexpr size_t kRemembered = 256;
  [[nodiscard]] uint64_t next_of(uint64_t number) const;

  std::map<uint64_t, uint64_t> next_among_;  ///< next number, by the first number of the set
  std::map<uint64_t, OpenExchange> open_;
  std::set<uint64_t> early_;          ///< exchanges in open_ that this rank has not begun
  std::map<uint64_t, Error> aborts_;  ///< the first abort of each collective call that failed
  uint64_t next_ = 0;
  Place next_place_;
  std::deque<Begun> begun_;  ///< the most recent calls
};

}  // namespace pw
