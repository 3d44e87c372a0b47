// The operations of one rank that a plan will do at each start. The functions of PlanOperations check them
// and record them; how each is done is decided when the plan is prepared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "context/signal.h"
#include "device/device.h"
#include "memory/region.h"
#include "memory/remote.h"
#include "peerway/device/element.cuh"
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
  /// 0: a start sends and a finish receives. Others: the round of the finish that does either.
  uint32_t round = 0;
};

/// A round of a finish begins when everything before it is done in the same epoch: first it combines
/// elements, then it sends and receives. Rounds are numbered from 1.
struct PlannedReduction {
  uint32_t round = 1;
  peerway::device::Reduction reduction{};
  uint64_t bytes = 0;                         ///< of this rank's operand
  std::vector<std::shared_ptr<Region>> keep;  ///< the regions of its memory, kept open for the plan
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
  void send(int rank, int tag, std::shared_ptr<Region> from, const pw_block& block, uint32_t round = 0);
  void receive(int rank, int tag, std::shared_ptr<Region> to, const pw_block& block, uint32_t round = 0);
  /// The caller has checked the addresses. A round has at most one reduction.
  void reduce(PlannedReduction reduction) { reductions_.push_back(std::move(reduction)); }
  /// Cancels the plan if that rank is lost, even if it exchanges no messages with this rank.
  void depend_on(int rank) { dependencies_.insert(rank); }
  /// Says that the ranks start this plan at about the same time. So a send that waits until its receiver has
  /// started waits for a message.
  void expect_common_start() { common_start_ = true; }
  [[nodiscard]] bool common_start() const { return common_start_; }
  /// The first line of the plan's description.
  void set_title(std::string title) { title_ = std::move(title); }

  [[nodiscard]] const std::vector<PlannedMove>& moves() const { return moves_; }
  [[nodiscard]] const std::vector<Notification>& notifications() const { return notifications_; }
  [[nodiscard]] const std::vector<PlannedWait>& afters() const { return afters_; }
  [[nodiscard]] const std::vector<PlannedWait>& waits() const { return waits_; }
  [[nodiscard]] const std::vector<LaneEnd>& sends() const { return sends_; }
  [[nodiscard]] const std::vector<LaneEnd>& receives() const { return receives_; }
  [[nodiscard]] const std::vector<PlannedReduction>& reductions() const { return reductions_; }
  [[nodiscard]] const std::string& title() const { return title_; }
  [[nodiscard]] uint32_t rounds() const;  ///< of a finish

  /// The ranks whose loss cancels the plan; PW_ANY_RANK stands for all.
  [[nodiscard]] const std::set<int>& dependencies() const { return dependencies_; }
  /// The ranks with which this rank exchanges messages of the plan, and with which it prepares the plan.
  [[nodiscard]] std::set<int> partners() const;
  /// The bytes that one start sends and puts.
  [[nodiscard]] uint64_t sent_bytes() const;

 private:
  LaneEnd make_end(int rank, int tag, std::shared_ptr<Region> region, const pw_block& block, bool sends);

  const Team& team_;
  Device& device_;
  std::vector<PlannedMove> moves_;
  std::vector<Notification> notifications_;
  std::vector<PlannedWait> afters_, waits_;
  std::vector<LaneEnd> sends_, receives_;
  std::vector<PlannedReduction> reductions_;
  std::string title_;
  bool common_start_ = false;
  std::set<int> dependencies_;
};

}  // namespace pw
