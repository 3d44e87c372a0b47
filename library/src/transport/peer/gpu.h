// peer/copy and peer/store: a GPU moves the bytes itself, over NVLink or PCIe, between its memory, memory of
// peers that it has mapped, and pinned host memory. `copy` uses the copy engine, `store` a kernel. The two
// differ in what they are good at, so they are two methods that are measured apart.
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
  explicit PeerGpu(Method method) : Path(Completes::later), method_(method) {}
  ~PeerGpu() override;
  [[nodiscard]] std::string_view name() const override {
    return method_ == Method::engine ? "peer/copy" : "peer/store";
  }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote&) override { return probe(pair); }
  [[nodiscard]] Offer probe(const Pair& pair) const;
  [[nodiscard]] bool uses_mappings() const override { return true; }
  pw_status start(const Transfer& transfer) override;
  bool can_start_and_store(const Transfer& transfer, Remote& signal) override;
  pw_status start_and_store(const Transfer& transfer, SignalTurn& turn) override;
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override;
  pw_status outcome(int rank, Mark mark) override;

 private:
  struct DeviceQueue {  ///< of one device towards one rank
    std::unique_ptr<Queue> queue;
    std::atomic<uint64_t> started{0};   ///< transfers
    std::atomic<uint64_t> complete{0};  ///< the first so many are
    pw_status failed = PW_OK;           ///< with the lock
  };
  DeviceQueue& queue_to(int rank, Device& device);
  template <typename Give>
  pw_status start_by(const Transfer& transfer, Give&& give);

  Method method_;
  std::atomic<bool> used_ = false;  ///< by any transfer; spares marks the lock
  std::mutex mutex_;
  std::map<std::pair<int, Device*>, std::unique_ptr<DeviceQueue>> queues_;
  std::string failure_;  ///< the message of the last that failed
};

}  // namespace pw
