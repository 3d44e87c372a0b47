// A plan: operations of one rank that are prepared once and started many times, from the host, on a stream,
// or inside a kernel. prepare() decides how each operation is done; README.md names its phases.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "context/context.h"
#include "plan/builder/operations.h"
#include "plan/lowering/lowering.h"
#include "plan/negotiation/negotiation.h"
#include "plan/run/posted.h"
#include "plan/run/proxy.h"
#include "team/agreement.h"

namespace pw {

/// The plan itself. peerway::Plan of the C++ interface (peerway/plan.hpp) owns a handle of it.
class Plan {
 public:
  Plan(Context& context, Device& device);
  ~Plan();
  Plan(const Plan&) = delete;

  [[nodiscard]] Device& device() const { return device_; }

  /// The operations of the plan, to add to. Throws Error once the plan is prepared.
  PlanOperations& operations();

  /// Prepares the plan. Collective over the team, unless `alone`. Throws Error. If one rank of a collective
  /// cannot prepare its plan, all ranks throw (run_exchange() in team/agreement.h).
  void prepare(bool alone);
  /// The same, collective over these ranks alone.
  void prepare_among(std::span<const int> ranks);
  /// prepare() in two steps, for a caller that has used the exchange for messages of its own before.
  void prepare_in(Exchange& exchange);
  void keep_exchange(std::unique_ptr<Exchange> exchange);
  void set_timeout(uint64_t timeout_ns);
  /// Tells a prepared plan whether kernels run beside it. No launch may be under way in another thread.
  void leave_room(bool yes);

  // Data paths.
  /// Starts the plan from the host. If `number` is not null, it receives the number of this start, from 1.
  pw_status start(uint64_t* number = nullptr);
  pw_status finish(uint64_t timeout_ns);
  /// Finishes start `number` if that needs no wait. Returns true if the start is finished, or if finishing it
  /// failed; `ended` is then the outcome.
  bool finished(uint64_t number, pw_status& ended);
  /// The source to poll while a thread waits for the finish; null if the plan does not use the proxy.
  [[nodiscard]] Source* source() const { return proxy_.get(); }
  pw_status enqueue(void* stream, PlanPart part, const Condition& condition = {});
  /// A start and its finish between two copies, such as into the plan's memory and out of it.
  pw_status enqueue_between(void* stream, const FlatCopy& before, const FlatCopy& after);
  [[nodiscard]] pw_status status() const;
  pw_status handle(pw_plan_handle& handle);
  pw_status lane(bool sends, int rank, int tag, pw_lane_handle& handle);
  pw_status all_reduce(pw_all_reduce_handle& handle);

  /// Text with a line for each put and get, each send and each receive: what it moves, and by which method.
  [[nodiscard]] const std::string& describe() const { return lowered_.description; }

 private:
  void begin_program();  ///< makes the guard, and lowers all operations but sends and receives
  void end_program();    ///< makes the runner from the program, which is complete
  void cancel_on_losses();
  void serve_by_proxy();
  pw_status refuse_unprepared(const char* action) const;
  pw_status give_to_kernels(pw_plan_handle& handle);
  /// Called before finish() sleeps: lets the device give the notice. Returns what will wake the thread.
  Wakes request_notice(const std::shared_ptr<Notice>& notice);
  /// Records that the part begins on the stream (none: from the host), and returns the number of a start.
  /// Fails if it is not the part's turn.
  pw_status enter_part(PlanPart part, std::optional<void*> stream, uint64_t* start_number);
  /// Checks that the part may be enqueued on the stream, and records that it begins.
  pw_status enter_on(void* stream, PlanPart part);
  pw_status begin_finish();

  Context& context_;
  Device& device_;
  PlanOperations operations_;
  uint64_t timeout_ns_;
  LoweredPlan lowered_;
  std::optional<Negotiation> negotiation_;
  std::shared_ptr<Proxy> proxy_;
  std::shared_ptr<PostedPlan> served_;  ///< what the proxy does at each start; null if that is nothing
  std::unique_ptr<Runner> runner_;      ///< null until the plan is prepared
  std::shared_ptr<void> on_loss_, on_close_;
  std::unique_ptr<Exchange> exchange_;  ///< in which it was prepared; null if it was prepared alone
  std::mutex mutex_;                    ///< protects the members below
  bool started_ = false;           ///< whether a start from the host or on a stream is not finished there
  bool finishing_ = false;         ///< whether the host's finish has begun
  uint64_t number_ = 0;            ///< number of the last start
  bool in_kernels_ = false;        ///< whether kernels may finish what was started on a stream
  std::optional<void*> stream_{};  ///< the stream of the last start; none: it was from the host
};

}  // namespace pw
