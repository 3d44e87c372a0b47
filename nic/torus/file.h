// The torus file: the network's shape and speed, the addresses of its nodes, and the faults to inject.
// docs/nic/torus.md describes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pw::torus {

inline constexpr uint32_t kMostEndpoints = 1024;

struct NodeAddress {
  uint32_t ip = 0;    ///< in network byte order
  uint16_t port = 0;  ///< port of context 0, the other contexts use the following ports; 0: any
  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

struct Death {
  uint32_t node;
  uint64_t after_ns;  ///< time since the first endpoint of the job on the host was opened; 0: never alive
  friend bool operator==(const Death&, const Death&) = default;
};

/// A probability from 0 to 1 for each operation, and the longest delay in ns.
struct Chance {
  double probability = 0;
  uint64_t ns = 0;
};

struct Faults {
  uint64_t seed = 1;
  Chance delay;    ///< all later operations to the same peer are delayed, too
  Chance reorder;  ///< a put is held back, and operations that may overtake it do
  double drop = 0, duplicate = 0, corrupt = 0;  ///< probabilities for each datagram

  [[nodiscard]] bool of_packets() const { return drop > 0 || duplicate > 0 || corrupt > 0; }
  [[nodiscard]] bool of_operations() const { return delay.probability > 0 || reorder.probability > 0; }
};

struct TorusFile {
  std::vector<uint32_t> extents{8};
  uint32_t contexts = 128;  ///< endpoints per node
  double hop_ns = 129, latency_ns = 850, gap_ns = 0, gbit_per_s = 75;
  bool timed = false;       ///< whether these four are modelled
  uint32_t guarantees = 3;  ///< the guarantees that are kept: PW_NIC_PUTS_IN_ORDER, PW_NIC_GETS_BEHIND_PUTS
  uint32_t stated = 3;  ///< the guarantees that query() states; different only to test the conformance tests
  std::vector<NodeAddress> nodes;  ///< one for each node; empty: all nodes are on this host
  std::vector<std::pair<uint32_t, uint32_t>> cut;
  std::vector<Death> dead;
  Faults faults;

  [[nodiscard]] uint32_t node_count() const;
};

/// Throws pw::Error, which says where in the file what is wrong.
TorusFile parse_torus(std::string_view text, const std::string& name);

/// Reads and parses the file at `path`; returns the default if `path` is empty. Sets `text` to what was read.
TorusFile load_torus(const std::string& path, std::string& text);

}  // namespace pw::torus
