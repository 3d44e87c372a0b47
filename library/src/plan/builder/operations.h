// The operations of one rank that a plan will do at each start. The functions of PlanOperations check them
// and record them; how each is done is decided when the plan is prepared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "context/signal.h"
#include "device/device.h"
#include "memory/region.h"
#include "memory/remote.h"
#include "team/team.h"
#include "transport/path.h"

namespace pw {

/// A put or get.
struct PlannedMove {
  Transfer transfer;
  std::shared_ptr<Region> keep;  ///< the local region of `transfer`, kept open for the plan
  std::optional<Notification> notification;
};

/// A wait for a signal: before a start moves data with the signal's sender (`after`), or in a finish
/// (`wait`).
struct PlannedWait {
  Signal* signal;
  uint64_t by;    ///< by how much the signal grows in each epoch
  uint64_t lead;  ///< number of first epochs that need not wait
};

/// A send or receive of this rank: one end of a lane.
struct LaneEnd {
  int rank = 0;  ///< the rank at the other end
  int tag = 0;
  std::shared_ptr<Region> region;
  pw_block block{};  ///< in the region
  uint64_t bytes = 0;
  /// The copy between the block and a buffer without gaps: for a send `from` is the block, for a receive
  /// `to`.
  Layout layout;
};

class PlanOperations {
 public:
  PlanOperations(const Team& team, Device& device) : team_(team), device_(device) {}

  // All throw Error.
  void put(Remote& to, const pw_block& to_block, std::shared_ptr<Region> from, const pw_block& from_block,
           const Notification* notification);
  void get(Remote& from, const pw_block& from_block, std::shared_ptr<Region> to, const pw_block& to_block);
  void notify(const Notification& notification);
  void after(Signal& signal, uint64_t lead, uint64_t by);
  void wait(Signal& signal, uint64_t by);
  void send(int rank, int tag, std::shared_ptr<Region> from, const pw_block& block);
  void receive(int rank, int tag, std::shared_ptr<Region> to, const pw_block& block);

  [[nodiscard]] const std::vector<PlannedMove>& moves() const { return moves_; }
  [[nodiscard]] const std::vector<Notification>& notifications() const { return notifications_; }
  [[nodiscard]] const std::vector<PlannedWait>& afters() const { return afters_; }
  [[nodiscard]] const std::vector<PlannedWait>& waits() const { return waits_; }
  [[nodiscard]] const std::vector<LaneEnd>& sends() const { return sends_; }
  [[nodiscard]] const std::vector<LaneEnd>& receives() const { return receives_; }

  /// The ranks whose loss cancels the plan; PW_ANY_RANK stands for all.
  [[nodiscard]] const std::set<int>& dependencies() const { return dependencies_; }
  /// The ranks with which this rank exchanges messages of the plan, and with which it prepares the plan.
  [[nodiscard]] std::set<int> partners() const;
  /// The bytes that one start sends and puts.
  [[nodiscard]] uint64_t sent_bytes() const;

 private:
  void add_dependency(int rank) { dependencies_.insert(rank); }
  LaneEnd make_end(int rank, int tag, std::shared_ptr<Region> region, const pw_block& block, bool sends);

  const Team& team_;
  Device& device_;
  std::vector<PlannedMove> moves_;
  std::vector<Notification> notifications_;
  std::vector<PlannedWait> afters_, waits_;
  std::vector<LaneEnd> sends_, receives_;
  std::set<int> dependencies_;
};

}  // namespace pw
