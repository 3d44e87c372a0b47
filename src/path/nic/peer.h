// What an engine has for each rank, and what is under way towards it.
#pragma once

#include <atomic>
#include <memory>

#include "path/backlog.h"
#include "path/nic/engine.h"

namespace pw::nic {

/// Counts operations that are under way, and keeps the first failure. One is given to all of a kind.
struct Tally : pw_nic_done {
  Tally() {
    call = [](pw_nic_done* done, pw_nic_status with) {
      auto* tally = static_cast<Tally*>(done);
      tally->add(-1);
      if (with != PW_NIC_OK && tally->failed == PW_NIC_OK) tally->failed = with;
    };
  }
  /// With the lock, so that counting costs no more than a store.
  void add(int64_t by) {
    under_way.store(under_way.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  std::atomic<int64_t> under_way{0};
  pw_nic_status failed = PW_NIC_OK;  ///< with the lock
};

/// Ends when all puts and words before it are in place.
struct Proof : pw_nic_done {
  Proof() {
    call = [](pw_nic_done* done, pw_nic_status with) {
      auto* proof = static_cast<Proof*>(done);
      proof->status = with;
      proof->over = true;
    };
  }
  uint64_t of = 0;  ///< operations that it proves; 0: none is under way
  bool over = false;
  pw_nic_status status = PW_NIC_OK;
};

struct Engine::Peer {
  int rank = 0;
  std::unique_ptr<Stream> stream;
  Tally puts, gets;
  uint64_t accepted = 0;  ///< operations
  uint64_t issued = 0;    ///< the first so many were given to the NIC
  Backlog backlog;        ///< the others
  uint64_t wanted = 0;    ///< the first so many are to be proven complete
  uint64_t complete = 0;  ///< the first so many are, at both ends, or have failed
  Proof proof;
  pw_nic_status failed = PW_NIC_OK;  ///< of a proof

  [[nodiscard]] bool has_failed() const {
    return backlog.failed() || failed != PW_NIC_OK || puts.failed != PW_NIC_OK || gets.failed != PW_NIC_OK;
  }
};

}  // namespace pw::nic
