// Runs programs on a GPU: the table of steps and the epochs are in its memory, and one kernel does a start, a
// finish, or both.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/cuda/kernels.h"
#include "device/cuda/pins.h"
#include "device/cuda/queue.h"
#include "device/cuda/step_times.h"
#include "device/program.h"

namespace pw::cuda {

/// Converts steps to messages if all of them send or receive by packets, or all by lines, with 8-byte words
/// in blocks at one stride; otherwise returns nothing.
std::vector<PlanMessage> make_messages(std::span<const peerway::device::Step> steps);

/// Returns the number of blocks for a plan whose sends have so many bytes together, on a GPU with `sms`
/// multiprocessors. `room`: kernels run beside it.
unsigned blocks_of_plan(unsigned pieces, uint64_t bytes, unsigned sms, bool room);

class CudaRunner final : public Runner {
 public:
  /// Throws Error.
  CudaRunner(const Gpu& gpu, CUcontext context, Pins& pins, const Kernels& kernels, const Program& program);
  ~CudaRunner() override;

  pw_status enqueue(void* stream, PlanPart part, const Condition& condition) override;
  pw_status begin(PlanPart part, const std::optional<void*>& after) override;
  bool done(pw_status& status) override;
  bool notify(void (*call)(void*), void* user) override;
  void leave_room(bool yes) override;
  uint64_t epochs(PlanPart part) override;
  pw_status handle(pw_plan_handle& handle) override;

 private:
  /// A round of a finish, ready to be launched.
  struct Round {
    ReduceLaunch reduction;  ///< of no elements if there is none: it also cancels the round if it must
    PlanLaunch launch;
  };

  [[nodiscard]] pw_guard guard() const;
  /// `before`: the number of pieces before the reduction; `after`: of those in its round.
  [[nodiscard]] ReduceLaunch reduce_launch(const peerway::device::Reduction& reduction, unsigned before,
                                           unsigned after) const;
  void upload();
  void prepare(PlanPart part);
  void prepare(PlanLaunch& launch, std::span<const peerway::device::Step> steps, unsigned part);
  void prepare_rounds(const Program& program);
  pw_status launched(CUresult outcome, const char* launch) const;
  pw_status launch_rounds(CUstream stream, const Condition& condition);
  [[nodiscard]] bool as_messages(PlanLaunch& launch, std::span<const peerway::device::Step> steps) const;
  void release() noexcept;

  const Gpu gpu_;
  CUcontext context_;
  Pins& pins_;
  const Kernels& kernels_;
  std::shared_ptr<Guard> guard_;
  std::vector<peerway::device::Step> steps_;
  size_t start_steps_, finish_steps_;
  uint64_t sent_bytes_ = 0;  ///< by all sends of a start
  bool leaves_room_ = false;
  unsigned start_pieces_ = 0, finish_pieces_ = 0, round_pieces_ = 0;
  std::vector<PlanMessage> messages_;  ///< one for each step, or empty
  CUdeviceptr memory_ = 0;             ///< holds the steps, the counters of finished pieces, and the epochs
  CUdeviceptr epochs_ = 0;
  CUdeviceptr times_in_memory_ = 0;     ///< 0: the plan is not traced
  std::unique_ptr<TracedTimes> times_;  ///< null if the plan is not traced
  PlanLaunch launch_[3] = {};           ///< by PlanPart
  std::vector<Round> rounds_;
  CUstream own_ = nullptr;       ///< stream of starts from the host
  CUstream begun_on_ = nullptr;  ///< stream of the last begin()
};

}  // namespace pw::cuda
