// Random traffic of one process towards all processes, including itself: puts and gets of all sizes and
// alignments, as many at once as the NIC accepts, with memory that is registered and deregistered meanwhile.
// The process that starts an operation knows the expected bytes, and polls the target's memory until they are
// there.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nic/check/end.h"
#include "nic/check/stand.h"
#include "nic/check/talk.h"

namespace pw::nic::check {

/// The addresses of all processes, and the keys of their memory.
struct Places {
  std::array<pw_nic_address, kRanks> address;
  std::array<pw_nic_key, kRanks> key;
  std::array<uint8_t, kRanks> there;  ///< 0: this process takes no part
  uint64_t seed;
  uint64_t share_ns;
};
Bytes pack(const Places& places);
Places unpack_places(const Bytes& bytes);

struct Moved {
  uint64_t puts = 0, gets = 0, adds = 0, renewals = 0;
};

/// Throws Broken if the NIC fails.
Moved run_traffic(End& end, const Stand& stand, uint32_t rank, const Places& places);

/// The word of rank 0's arena to which all processes add, if the NIC has fetch_add().
inline constexpr uint64_t kSumWord = 0;

}  // namespace pw::nic::check
