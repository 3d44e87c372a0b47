// Random traffic of one process towards all, itself among them: puts and gets of all sizes and alignments, as
// many under way as the NIC takes, with memory that is registered and deregistered meanwhile. The process
// that starts an operation knows what its bytes must be, and looks at the target's memory until they are.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nic/check/end.h"
#include "nic/check/stand.h"
#include "nic/check/talk.h"

namespace pw::nic::check {

/// The addresses of all processes, and what is registered there.
struct Places {
  std::array<pw_nic_address, kRanks> address;
  std::array<pw_nic_key, kRanks> key;
  std::array<uint8_t, kRanks> there;  ///< 0: not this one
  uint64_t seed;
  uint64_t share_ns;
};
Bytes pack(const Places& places);
Places unpack_places(const Bytes& bytes);

struct Moved {
  uint64_t puts = 0, gets = 0, adds = 0, renewals = 0;
};

/// Throws Broken.
Moved run_traffic(End& end, const Stand& stand, uint32_t rank, const Places& places);

/// The word of rank 0's arena that all add to, where the NIC has fetch_add().
inline constexpr uint64_t kSumWord = 0;

}  // namespace pw::nic::check
