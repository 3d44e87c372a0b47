// The initiator's half of the transfers of ucx/staged with one target.
#pragma once

#include <atomic>
#include <memory>

#include "transport/transfer_queue.h"
#include "transport/ucx/note.h"
#include "transport/ucx/ring.h"

namespace pw::ucx {

class StagedInitiator final : public TransferQueue {
 public:
  /// Makes the ring; the first transfer asks the target for its ring. Throws Error.
  StagedInitiator(const Surroundings& surroundings, const std::shared_ptr<UcxEngine>& engine, int target,
                  std::atomic<uint64_t>& waiting);

  /// Waits until both rings exist, and makes the queue for memory of such a transfer. Throws Error.
  void prepare(const Transfer& transfer);

  /// Receives the target's answer about its ring; any thread may call it.
  void answer(RingNote note);

 private:
  pw_status go_on(QueuedTransfer& next, bool& done) override;
  bool unused() override { return ring_.idle(); }
  bool leave_memory() override { return end_->leave_memory(); }
  pw_status refused() override;
  [[nodiscard]] uint64_t chunks() const override { return end_ == nullptr ? 0 : end_->chunks(); }
  [[nodiscard]] bool over() const override { return engine_->over(rank_); }
  pw_status why_over() override { return engine_->why_over(rank_); }
  [[nodiscard]] bool served(uint64_t count) const override {
    return ring_.header().completed.load(std::memory_order_acquire) >= count;
  }
  pw_status outcome_there() override;

  pw_status open();
  pw_status post(QueuedTransfer& next);
  [[nodiscard]] bool answered() const { return answered_.load(std::memory_order_acquire); }

  const Surroundings surroundings_;
  const Secret secret_;  ///< authenticates notes
  const std::shared_ptr<UcxEngine> engine_;
  Ring ring_;
  bool ring_requested_ = false;   ///< whether the target was asked for its ring
  std::unique_ptr<RingEnd> end_;  ///< made once the target's ring is known
  uint64_t requested_ = 0;
  RingNote answer_;  ///< written before answered_ is set
  std::atomic<bool> answered_{false};
  std::atomic<uint64_t> reported_failures_{0};  ///< failures at the target that were reported
};

}  // namespace pw::ucx
