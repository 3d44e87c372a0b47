// Routes through a torus: dimension by dimension, the shorter way around in each; around cut links and dead
// nodes with the fewest hops.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "peerway/nic.h"

namespace pw::torus {

/// A directed link that leaves `node` in `direction`: 2 * dimension, + 1 towards lower coordinates.
struct Link {
  uint32_t node;
  uint32_t direction;
  friend bool operator==(const Link&, const Link&) = default;
};

inline constexpr uint32_t kDirections = 2 * PW_NIC_DIMENSIONS;

struct Route {
  bool exists = false;
  std::vector<Link> links;  ///< empty from a node to itself
};

class Grid {
 public:
  explicit Grid(std::vector<uint32_t> extents);

  [[nodiscard]] uint32_t nodes() const { return static_cast<uint32_t>(dead_.size()); }
  [[nodiscard]] const std::vector<uint32_t>& extents() const { return extents_; }
  [[nodiscard]] std::array<uint32_t, PW_NIC_DIMENSIONS> coordinates(uint32_t node) const;
  [[nodiscard]] uint32_t behind(Link link) const;  ///< the node at the other end of the link

  void cut(uint32_t a, uint32_t b);  ///< cuts all links between the two, in both directions
  void kill(uint32_t node);
  [[nodiscard]] bool dead(uint32_t node) const { return dead_[node]; }

  [[nodiscard]] Route route(uint32_t from, uint32_t to) const;

 private:
  [[nodiscard]] bool usable(Link link) const;
  [[nodiscard]] Route by_dimensions(uint32_t from, uint32_t to) const;
  [[nodiscard]] Route by_breadth(uint32_t from, uint32_t to) const;

  std::vector<uint32_t> extents_;
  std::vector<uint8_t> cut_;  ///< by node, one bit for each direction
  std::vector<bool> dead_;
  bool whole_ = true;
};

}  // namespace pw::torus
