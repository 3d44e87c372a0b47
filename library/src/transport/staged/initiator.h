// The initiator's half of the staged transfers with one target, through a ring in shared memory.
#pragma once

#include <atomic>
#include <memory>

#include "base/descriptor.h"
#include "transport/staged/channel.h"
#include "transport/transfer_queue.h"

namespace pw {

class StagingInitiator final : public TransferQueue {
 public:
  /// Makes the ring; the first transfer asks the target to serve it. A transfer uses the value that
  /// `chunk_bytes` has when it starts. Throws Error.
  StagingInitiator(const Surroundings& surroundings, int target, std::atomic<uint64_t>& waiting,
                   const std::atomic<uint64_t>& chunk_bytes);
  ~StagingInitiator() override;

  /// Waits until the target serves the ring, and pins the ring for the device of such a transfer. Throws
  /// Error.
  void prepare(const Transfer& transfer);

  /// Whether memory of a GPU has passed the ring. A GPU then writes the counters, and wakes nobody.
  [[nodiscard]] bool by_gpu() const { return by_gpu_.load(std::memory_order_relaxed); }

 private:
  pw_status go_on(QueuedTransfer& next, bool& done) override;
  bool unused() override { return end_.idle(); }
  bool leave_memory() override;
  pw_status refused() override;
  void blocked() override { end_.header().initiator_waits.store(1, std::memory_order_seq_cst); }
  [[nodiscard]] uint64_t chunks() const override { return end_.passed(); }
  [[nodiscard]] bool over() const override;
  pw_status why_over() override;
  [[nodiscard]] bool served(uint64_t count) const override {
    return end_.header().completed.load(std::memory_order_acquire) >= count;
  }
  pw_status outcome_there() override;

  void announce();
  [[nodiscard]] bool attached() const { return end_.header().attached.load(std::memory_order_acquire) != 0; }
  bool post(QueuedTransfer& next);
  bool divide_ring(const Transfer& transfer);
  void write(PostedRequest& posted, const QueuedTransfer& next) const;

  const Surroundings surroundings_;
  const std::shared_ptr<Control> target_;
  const Descriptor memfd_;
  Mailbox& mailbox_;              ///< in the target's control segment
  const WakeupPipe wakeup_pipe_;  ///< the target's
  const std::atomic<uint64_t>& chunk_bytes_;

  ChannelEnd end_;
  bool announced_ = false;
  uint64_t posted_ = 0;                         ///< number of requests
  RingDivision division_;                       ///< how the ring is divided
  std::atomic<uint64_t> reported_failures_{0};  ///< failures at the target that were reported
  std::atomic<bool> by_gpu_{false};
};

}  // namespace pw
