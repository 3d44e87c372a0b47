// The posted operations of a plan: transfers and notifications that its device cannot do itself. The proxy
// does them at each start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "context/context.h"
#include "device/program.h"
#include "plan/run/proxy.h"

namespace pw {

struct PostedOperation {
  int rank;                                  ///< the rank at the other end
  std::optional<Transfer> transfer;          ///< none: only the notification
  std::optional<Notification> notification;  ///< after the transfer
  GrowingWords wait;                         ///< the operation begins when these words have their value
  uint32_t round = 0;                        ///< the round of the plan that it belongs to
};

/// The rounds that have operations, each once, in their order. Pure.
std::vector<uint32_t> rounds_of(const std::vector<PostedOperation>& operations);

/// All posted operations of one plan. In each epoch each round that has operations is a turn; turns are
/// counted from 1. The device stores the number of a turn in the guard's `trigger`. Then poll() begins each
/// operation of that round as soon as the words that it waits for have their value, and stores the turn in
/// the guard's `done` once all are complete. A failure cancels the plan.
class PostedPlan final : public Served {
 public:
  PostedPlan(Context& context, std::vector<PostedOperation> operations, std::shared_ptr<Guard> guard);

  Poll poll() override;
  void cancel(pw_status why, const std::string& message) override;

 private:
  [[nodiscard]] bool triggered() const;
  bool begin_open();
  bool complete();
  pw_status completion();
  /// Cancels the plan unless the status is PW_OK. Returns whether it is.
  bool ok_or_cancel(int rank, pw_status status);

  Context& context_;
  std::vector<PostedOperation> operations_;
  [[nodiscard]] uint64_t epoch() const { return (turn_ - 1) / rounds_.size() + 1; }  ///< of the last turn
  [[nodiscard]] uint32_t round() const { return rounds_[(turn_ - 1) % rounds_.size()]; }

  std::vector<uint32_t> rounds_;
  std::vector<int> ranks_;  ///< the ranks that transfers go to, each once
  std::shared_ptr<Guard> guard_;
  uint64_t turn_ = 0;         ///< the last turn that was begun
  std::vector<size_t> open_;  ///< its operations that have not begun
  bool busy_ = false;         ///< whether the turn is under way
  bool marked_ = false;       ///< whether all its operations have begun: `marks_` follow them
  Marks marks_;               ///< when these are reached, the turn is complete
  uint64_t deadline_ns_ = 0;  ///< for reaching the marks
  uint64_t bytes_ = 0;        ///< bytes of an epoch's transfers
  uint64_t trace_began_ = 0;  ///< when the turn began, for a trace
};

}  // namespace pw
