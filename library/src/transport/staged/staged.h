// staged: copies through bounce buffers in shared host memory, pipelined. The initiator copies chunk after
// chunk into (or out of) a ring, and the target's staging service does the other half. It requires nothing of
// either memory, so it serves every pair on one host, also memory that cannot be exported. It can also move a
// share of a large transfer over PCIe while another path moves the rest over NVLink.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/staged/initiator.h"
#include "transport/staged/service.h"
#include "transport/transport.h"

namespace pw {

class Staged final : public Path, public Source {
 public:
  explicit Staged(Surroundings surroundings);
  [[nodiscard]] std::string_view name() const override { return "staged"; }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote&) override { return offer_for(pair); }
  [[nodiscard]] static Offer offer_for(const Pair& pair);
  void prepare(const Transfer& transfer) override { initiator_to(transfer.remote->rank()).prepare(transfer); }
  pw_status start(const Transfer& transfer) override {
    return initiator_to(transfer.remote->rank()).start(transfer, nullptr);
  }
  bool can_start_and_store_word(const Transfer&, Remote& signal) override { return signal.word() != nullptr; }
  pw_status start_and_store_word(const Transfer& transfer, SignalTurn& turn) override {
    return initiator_to(transfer.remote->rank()).start(transfer, &turn);
  }
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override { return known_initiator(rank)->reached(mark); }
  pw_status outcome(int rank, Mark mark) override { return known_initiator(rank)->outcome(mark); }
  [[nodiscard]] Source* source() override { return this; }
  /// The target's service wakes this rank; a GPU does not.
  [[nodiscard]] Wakes wakes(int rank) override {
    return known_initiator(rank)->by_gpu() ? Wakes::perhaps : Wakes::always;
  }

  bool poll() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool work_is_announced() const override { return true; }
  [[nodiscard]] bool has_work() const override { return waiting_.load(std::memory_order_acquire) > 0; }

  /// Sets the bytes of a chunk for transfers started later: a multiple of 4096, at most kLargestChunk. `tune`
  /// measures it.
  void set_chunk_bytes(uint64_t bytes) override;
  static constexpr uint64_t kLargestChunk = kRingBytes / 4;

 private:
  StagingInitiator& initiator_to(int rank);  ///< makes it at the first transfer; throws Error
  [[nodiscard]] StagingInitiator* known_initiator(int rank) const {
    return by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  }

  Surroundings surroundings_;
  std::atomic<uint64_t> chunk_bytes_;
  std::atomic<uint64_t> waiting_{0};      ///< number of transfers in all queues
  std::atomic<uint64_t> happened_ns_{0};  ///< when a transfer last made progress
  std::vector<std::atomic<StagingInitiator*>> by_rank_;
  std::mutex making_;  ///< protects the members below
  std::vector<std::unique_ptr<StagingInitiator>> all_;
};

/// The paths through staging, and this rank's service for the channels of peers.
class StagedTransport final : public Transport {
 public:
  explicit StagedTransport(const Surroundings& surroundings);
  std::vector<std::unique_ptr<Path>> paths() override;

 private:
  const Surroundings surroundings_;
  StagingService service_;
};

}  // namespace pw
