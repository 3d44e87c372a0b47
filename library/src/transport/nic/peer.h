// The data that an engine keeps for each rank, including the operations under way towards it.
#pragma once

#include <atomic>
#include <memory>

#include "progress/flush_tracker.h"
#include "transport/backlog.h"
#include "transport/nic/engine.h"

namespace pw::nic {

/// Counts operations that are under way, and keeps the first failure. All operations of a kind share one
/// tally.
struct Tally : pw_nic_done {
  Tally() {
    call = [](pw_nic_done* done, pw_nic_status with) {
      auto* tally = static_cast<Tally*>(done);
      tally->add(-1);
      if (with != PW_NIC_OK && tally->failed == PW_NIC_OK) tally->failed = with;
    };
  }
  /// Called with the lock held, so that counting costs only a store.
  void add(int64_t change) {
    under_way.store(under_way.load(std::memory_order_relaxed) + change, std::memory_order_release);
  }
  std::atomic<int64_t> under_way{0};
  pw_nic_status failed = PW_NIC_OK;  ///< protected by the lock
};

/// Completes when all puts and words before it are in place.
struct PendingFlush : pw_nic_done {
  PendingFlush() {
    call = [](pw_nic_done* done, pw_nic_status with) {
      auto* flush = static_cast<PendingFlush*>(done);
      flush->status = with;
      flush->over = true;
    };
  }
  bool over = false;
  pw_nic_status status = PW_NIC_OK;
};

struct NicEngine::NicPeer {
  int rank = 0;
  std::unique_ptr<Stream> stream;
  Tally puts, gets;
  FlushTracker flushes;
  PendingFlush flush;                ///< the flush under way
  Backlog backlog;                   ///< operations that the NIC had no room for
  pw_nic_status failed = PW_NIC_OK;  ///< status of a failed flush
  uint64_t report_at = 0;  ///< time at which a failure is reported even if the team does not know of it

  [[nodiscard]] bool has_failed() const {
    return backlog.failed() || failed != PW_NIC_OK || puts.failed != PW_NIC_OK || gets.failed != PW_NIC_OK;
  }
  [[nodiscard]] bool out_of_reach() const {
    constexpr auto kLost = PW_NIC_UNREACHABLE;
    return failed == kLost || puts.failed == kLost || gets.failed == kLost;
  }
};

}  // namespace pw::nic
