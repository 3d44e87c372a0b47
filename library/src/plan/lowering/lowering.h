// The lowering of a plan: its operations and lanes become the program that a device runs, and operations that
// the proxy does at each start.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "context/context.h"
#include "device/program.h"
#include "plan/builder/operations.h"
#include "plan/negotiation/negotiation.h"
#include "plan/run/posted.h"

namespace pw {

struct OwnedSignal {  ///< that only this plan notifies as long as it lives
  Notification notification;
  bool by_device;  ///< else by the proxy, which counts the notifications itself
};

struct LoweredPlan {
  Program program;
  std::vector<PostedOperation> posted;
  std::vector<OwnedSignal> owned;
  std::set<std::string, std::less<>> ways;  ///< the names that steps of the program have for a trace
  /// A line for each put and get, then for each send, then for each receive: what it moves, by which method.
  std::string description;
};

class Lowering {
 public:
  Lowering(Context& context, Device& device, LoweredPlan& plan)
      : context_(context), device_(device), plan_(plan) {}

  // In this order; all throw Error.
  void add_operations(const PlanOperations& operations);  ///< all but sends and receives
  void add_lanes(const Negotiation& negotiation);
  void complete();

 private:
  [[nodiscard]] bool on_host() const { return device_.id().kind == PW_HOST; }
  [[nodiscard]] const char* method_name(LaneKind kind) const;
  void add_description(const std::string& line);
  std::string_view way_of(std::string_view step);
  void reserve_signal(const Notification& notification, bool by_device);
  GrowingWords words_of(const Notification& notification);
  GrowingWords words_of(const PlannedWait& wait);

  // operations.cpp
  void add_signals(const PlanOperations& operations);
  void add_moves(const PlanOperations& operations);
  GrowingWords wait_of(const PlannedMove& move, const std::vector<PlannedWait>& afters,
                       std::vector<bool>& used);
  void add_move(const PlannedMove& move, const GrowingWords& wait, uint64_t of_all);

  // lanes.cpp
  void describe(const Lane& lane, bool sends);
  void add_send(const Negotiation& negotiation, const Lane& lane);
  void add_receive(const Negotiation& negotiation, const Lane& lane);
  [[nodiscard]] uint64_t* their_words(const Lane& lane) const;

  // posted.cpp
  void post(const PostedOperation& operation);
  Notification posted(const Notification& notification);
  void post_send(const Lane& lane);
  void post_receive(const Lane& lane);
  void add_trigger();
  void add_wakes();

  Context& context_;
  Device& device_;
  LoweredPlan& plan_;
};

/// Between the blocks of a lane's two ends.
Layout straight_layout(const Lane& lane);

}  // namespace pw
