// What a plan is to do: operations of one rank, checked and recorded. Nothing is decided yet.
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

struct PlannedMove {  ///< a put or get
  Transfer transfer;
  std::shared_ptr<Region> keep;
  std::optional<Notification> notification;
};

struct PlannedWait {  ///< an after or a wait
  Signal* signal;
  uint64_t by;
  uint64_t lead;
};

/// A send or receive of this rank.
struct LaneEnd {
  int rank = 0;  ///< at the other end
  int tag = 0;
  std::shared_ptr<Region> region;
  pw_block block{};
  uint64_t bytes = 0;
  /// Between the block and dense bytes: `from` is the block of a send, `to` that of a receive.
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

  /// The ranks that the plan depends on; with PW_ANY_RANK on all.
  [[nodiscard]] const std::set<int>& dependencies() const { return dependencies_; }
  /// The other ends of the lanes: the ranks that a prepare talks to.
  [[nodiscard]] std::set<int> partners() const;
  [[nodiscard]] uint64_t sent_bytes() const;  ///< by a start

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
