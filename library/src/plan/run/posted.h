// The transfers and notifications of a plan that its device cannot do itself: the proxy does them at each
// start.
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
  int rank;                          ///< at the other end
  std::optional<Transfer> transfer;  ///< none: only the notification
  std::optional<Notification> notification;
  GrowingWords wait;  ///< it begins once they are there
};

/// The device stores the epoch of a start in the guard's `trigger`, this does the operations of the epoch,
/// each as soon as what it waits for is there, and then stores the epoch in `done`. A failure cancels the
/// plan.
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
  bool must(int rank, pw_status status);

  Context& context_;
  std::vector<PostedOperation> operations_;
  std::vector<int> ranks_;  ///< that transfers go to, each once
  std::shared_ptr<Guard> guard_;
  uint64_t epoch_ = 0;        ///< under way, or done
  std::vector<size_t> open_;  ///< operations of it that have not begun
  bool busy_ = false;         ///< the epoch is under way
  bool begun_ = false;        ///< all of it; `marks_` say when it is complete
  Marks marks_;
  uint64_t deadline_ns_ = 0;  ///< for that
  uint64_t bytes_ = 0;        ///< of an epoch's transfers
  uint64_t began_ = 0;        ///< the epoch, for a trace
};

}  // namespace pw
