// ucx/staged: copies through pinned host memory at both ends. Each of the two ranks has a ring buffer of
// chunks. For a put, the initiator's device copies one chunk after another into its ring, UCX puts each chunk
// into the target's ring, and the target's StagedService copies it to its place; for a get the chunks take
// the opposite way. The three steps overlap for successive chunks.
//
// UCX needs no access to the memory itself. So this path also serves GPU memory if UCX was built without GPU
// support, it packs small blocks into large messages, and it is what GPUDirect RDMA (ucx/direct) is measured
// against.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "transport/ucx/staged_initiator.h"
#include "transport/ucx/staged_service.h"

namespace pw {

class UcxStaged final : public Path, public Source {
 public:
  UcxStaged(Surroundings surroundings, ucx::Ucx& ucx);
  [[nodiscard]] std::string_view name() const override { return "ucx/staged"; }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote& remote) override {
    return offer_for(pair, ucx_.facts(pair, remote));
  }
  [[nodiscard]] static Offer offer_for(const Pair& pair, const ucx::Facts& facts);
  void prepare(const Transfer& transfer) override { initiator_to(transfer.remote->rank()).prepare(transfer); }
  pw_status start(const Transfer& transfer) override {
    return initiator_to(transfer.remote->rank()).start(transfer, nullptr);
  }
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override { return known_initiator(rank)->reached(mark); }
  pw_status outcome(int rank, Mark mark) override { return known_initiator(rank)->outcome(mark); }
  [[nodiscard]] Source* source() override { return this; }

  /// Also polls UCX, which delivers what the queues wait for.
  bool poll() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool work_is_announced() const override { return true; }
  [[nodiscard]] bool has_work() const override { return waiting_.load(std::memory_order_acquire) > 0; }

 private:
  ucx::StagedInitiator& initiator_to(int rank);     ///< makes it at the first transfer; throws Error
  ucx::StagedInitiator* known_initiator(int rank);  ///< null if no transfer was ever started

  Surroundings surroundings_;
  ucx::Ucx& ucx_;
  std::atomic<uint64_t> waiting_{0};      ///< number of transfers in all queues
  std::atomic<uint64_t> happened_ns_{0};  ///< when a transfer last made progress
  std::mutex mutex_;
  std::map<int, std::unique_ptr<ucx::StagedInitiator>> initiators_;  ///< indexed by rank; none is ever
                                                                     ///< removed
  ucx::StagedService service_;  ///< last, because it answers the initiators
};

}  // namespace pw
