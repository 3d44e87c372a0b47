// Counts an endpoint's traffic, and writes the counts as JSON lines when the endpoint is closed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "torus/route.h"

namespace pw::torus {

struct Counters {
  uint64_t puts = 0, put_bytes = 0, gets = 0, get_bytes = 0;  ///< posted and accepted
  uint64_t by_memory = 0;  ///< operations that a CPU did through shared memory or cross-memory attach
  uint64_t unreachable = 0, refused = 0;
  uint64_t delayed = 0, reordered = 0;
  uint64_t datagrams = 0, datagram_bytes = 0;           ///< sent
  uint64_t again = 0;                                   ///< of these, retransmissions
  uint64_t dropped = 0, duplicated = 0, corrupted = 0;  ///< injected
  uint64_t rejected = 0;  ///< arrived, but damaged, from another job, or invalid
  uint64_t repeated = 0;  ///< arrived for a second time
};

struct LinkCount {
  uint64_t bytes = 0, packets = 0;
};

/// Counts `bytes` on each link of a route.
class LinkCounters {
 public:
  void add(const std::vector<Link>& links, uint64_t bytes, uint64_t packets);
  [[nodiscard]] const auto& all() const { return counts_; }

 private:
  std::map<std::pair<uint32_t, uint32_t>, LinkCount> counts_;  ///< by (node, direction)
};

/// Appends the lines of one endpoint to `path`; several processes may do so at once. Returns false on
/// failure.
bool write_counters(const std::string& path, uint32_t endpoint, uint32_t node, const Counters& counters,
                    const LinkCounters& links, const Grid& grid);

}  // namespace pw::torus
