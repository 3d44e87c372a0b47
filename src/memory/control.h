// The control segment: one small piece of shared memory a rank, which its peers on the same host map. It holds the
// generations of the rank's regions (so that a stale key is seen by one load, with no message), the words of its
// signals, and the doorbells of its service threads. It is a memfd: nothing is left behind when a process dies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace pw {

inline constexpr uint32_t kRegionSlots = 65536;
inline constexpr uint32_t kSignalWords = 65536;
inline constexpr uint32_t kMaxLocalRanks = 256;

/// One mailbox a peer on the same host: where that peer announces the staging channel it wants served.
struct alignas(64) Mailbox {
  std::atomic<int32_t> descriptor{-1};  ///< memfd number in the announcing process; -1: none
  std::atomic<int32_t> process{0};
};

struct Control {
  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> generation[kRegionSlots];  ///< even: closed, odd: open
  alignas(64) std::atomic<uint64_t> signal[kSignalWords];
  alignas(64) std::atomic<uint32_t> doorbell;  ///< futex: rung when there is work for the service thread
  alignas(64) Mailbox mailbox[kMaxLocalRanks];
};

/// What a rank tells the others about itself when a context is made.
struct Card {
  char host[64];          ///< host name, for messages
  uint64_t host_id;       ///< same value: same boot of the same kernel and the same process-id namespace
  int32_t process;
  int32_t control;        ///< memfd number of the control segment
  uint32_t ucx_address_bytes;
};

}  // namespace pw
