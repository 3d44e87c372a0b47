// A plan: operations of one rank, fixed once and started many times, from the host, on a stream, or inside a
// kernel. prepare() decides everything: README.md names its phases.
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

class Plan {
 public:
  Plan(Context& context, Device& device);
  ~Plan();
  Plan(const Plan&) = delete;

  [[nodiscard]] Device& device() const { return device_; }

  /// What the plan is to do. Throws Error once it is prepared.
  PlanOperations& operations();

  /// Collective unless `alone`. Throws Error, at every rank when one of them cannot (team/agreement.h,
  /// run_exchange()).
  void prepare(bool alone);
  /// The same, collective over these ranks alone.
  void prepare_among(std::span<const int> ranks);
  /// The two steps of prepare(), for callers that have exchanged more with the partners before.
  void prepare_in(Exchange& exchange);
  void keep_exchange(std::unique_ptr<Exchange> exchange);
  void set_timeout(uint64_t timeout_ns);

  // Data paths.
  pw_status start(uint64_t* number = nullptr);  ///< `number`: of this start, from 1
  pw_status finish(uint64_t timeout_ns);
  /// Finishes start `number` if that can be done without waiting, or was done: then `ended` is how.
  bool finished(uint64_t number, pw_status& ended);
  /// The source that brings the end nearer while somebody waits for it.
  [[nodiscard]] Source* source() const { return proxy_.get(); }
  pw_status enqueue(void* stream, PlanPart part);
  [[nodiscard]] pw_status status() const;
  pw_status handle(pw_plan_handle& handle);
  pw_status lane(bool sends, int rank, int tag, pw_lane_handle& handle);

  /// A line for each put and get, then for each send, then for each receive: what it moves, by which method.
  [[nodiscard]] const std::string& describe() const { return lowered_.description; }

 private:
  void begin_program();
  void end_program();
  void guard_losses();
  void serve();
  pw_status refuse_unprepared(const char* action) const;
  Wakes ask_for(const std::shared_ptr<Notice>& notice);  ///< before finish() sleeps
  pw_status record_part(PlanPart part, std::optional<void*> stream);
  pw_status begin_finish();

  Context& context_;
  Device& device_;
  PlanOperations operations_;
  uint64_t timeout_ns_;
  LoweredPlan lowered_;
  std::optional<Negotiation> negotiation_;
  std::shared_ptr<Proxy> proxy_;
  std::shared_ptr<PostedPlan> served_;  ///< by the proxy; null where nothing is posted
  std::unique_ptr<Runner> runner_;      ///< null until the plan is prepared
  std::shared_ptr<void> on_loss_, on_close_;
  std::unique_ptr<Exchange> exchange_;  ///< in which it was prepared; null if it was prepared alone
  std::mutex mutex_;                    ///< what follows
  bool started_ = false;                ///< from the host or on a stream, and not finished there
  bool finishing_ = false;              ///< the host's finish has begun
  uint64_t number_ = 0;                 ///< of the last start from the host
  bool in_kernels_ = false;             ///< kernels may finish what was started on a stream
  std::optional<void*> stream_{};       ///< of the start; none: from the host
};

}  // namespace pw
