// peer/copy and peer/store: a GPU moves the bytes itself, over NVLink or PCIe, between its memory, memory of
// peers that it has mapped, and pinned host memory. `copy` uses the copy engine, `store` a kernel. The two
// have different strengths, so they are two paths that are measured separately.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "transport/path.h"

namespace pw {

class PeerGpu final : public Path {
 public:
  explicit PeerGpu(CopyBy by) : Path(Completes::later), by_(by) {}
  ~PeerGpu() override;
  [[nodiscard]] std::string_view name() const override {
    return by_ == CopyBy::engine ? "peer/copy" : "peer/store";
  }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote&) override { return offer_for(pair); }
  [[nodiscard]] Offer offer_for(const Pair& pair) const;
  [[nodiscard]] bool uses_mappings() const override { return true; }
  pw_status start(const Transfer& transfer) override;
  bool can_start_and_store_word(const Transfer& transfer, Remote& signal) override;
  pw_status start_and_store_word(const Transfer& transfer, SignalTurn& turn) override;
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override;
  pw_status outcome(int rank, Mark mark) override;

 private:
  struct DeviceQueue {  ///< of one device, for transfers with one rank
    std::unique_ptr<Queue> queue;
    std::atomic<uint64_t> started{0};   ///< number of transfers
    std::atomic<uint64_t> complete{0};  ///< number of transfers that are complete
    pw_status failed = PW_OK;           ///< protected by the lock
  };
  DeviceQueue& queue_to(int rank, Device& device);
  template <typename Enqueue>
  pw_status start_with(const Transfer& transfer, Enqueue&& enqueue);

  CopyBy by_;
  std::atomic<bool> used_ = false;  ///< set by the first transfer; until then marks need no lock
  std::mutex mutex_;
  std::map<std::pair<int, Device*>, std::unique_ptr<DeviceQueue>> queues_;
  std::string failure_;  ///< the message of the last failure
};

}  // namespace pw
