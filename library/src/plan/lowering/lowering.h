// The lowering of a plan: makes the steps of the device's program from the plan's operations and lanes. What
// the device cannot do itself becomes operations that the proxy does at each start.
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

/// A signal that is reserved for this plan: nothing else of this rank may notify it while the plan lives.
struct OwnedSignal {
  Notification notification;
  bool by_device;  ///< notified by the program; else by the proxy, which counts its notifications itself
};

struct LoweredPlan {
  Program program;
  std::vector<PostedOperation> posted;
  std::vector<OwnedSignal> owned;
  std::set<std::string, std::less<>> methods;  ///< the texts to which ProgramStep::method refers
  /// Text with a line for each put and get, then for each send, then for each receive: what it moves, and by
  /// which method.
  std::string description;
};

class Lowering {
 public:
  Lowering(Context& context, Device& device, LoweredPlan& plan)
      : context_(context), device_(device), plan_(plan) {}

  // Call these in this order. All throw Error.
  void add_operations(const PlanOperations& operations);  ///< all but sends and receives
  void add_lanes(const Negotiation& negotiation);
  void complete();  ///< adds what the program needs beside them: trigger of the proxy, waking of other ranks

 private:
  [[nodiscard]] bool on_host() const { return device_.id().kind == PW_HOST; }
  [[nodiscard]] const char* method_name(SendMethod method) const;  ///< on this device
  void add_description(const std::string& line);
  std::string_view method_text(std::string_view step);
  void reserve_signal(const Notification& notification, bool by_device);
  GrowingWords words_of(const Notification& notification);  ///< reserves the signal for the device
  GrowingWords words_of(const PlannedWait& wait);

  // operations.cpp
  void add_signals(const PlanOperations& operations);
  void add_moves(const PlanOperations& operations);
  GrowingWords wait_of(const PlannedMove& move, const std::vector<PlannedWait>& afters,
                       std::vector<bool>& used);
  void add_move(const PlannedMove& move, const GrowingWords& wait, uint64_t of_all);

  std::vector<ProgramStep>& steps_of(uint32_t round, bool sends);
  void add_reductions(const PlanOperations& operations);

  // lanes.cpp
  void describe(const Lane& lane, bool sends);
  void add_send(const Negotiation& negotiation, const Lane& lane);
  void add_receive(const Negotiation& negotiation, const Lane& lane);
  [[nodiscard]] uint64_t* their_words(const Lane& lane) const;

  // posted.cpp
  void post(const PostedOperation& operation);  ///< checks and prepares it first
  Notification posted(const Notification& notification);
  void post_send(const Lane& lane);
  void post_receive(const Lane& lane);
  void add_triggers();
  void add_wakes();

  Context& context_;
  Device& device_;
  LoweredPlan& plan_;
};

/// The copy from the block of a send to the block of its receive.
Layout straight_layout(const Lane& lane);

}  // namespace pw
