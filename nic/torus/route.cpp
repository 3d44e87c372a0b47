#include "torus/route.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace pw::torus {

Grid::Grid(std::vector<uint32_t> extents) : extents_(std::move(extents)) {
  const uint32_t nodes = std::accumulate(extents_.begin(), extents_.end(), 1u, std::multiplies<>());
  cut_.resize(nodes);
  dead_.resize(nodes);
}

std::array<uint32_t, PW_NIC_DIMENSIONS> Grid::coordinates(uint32_t node) const {
  std::array<uint32_t, PW_NIC_DIMENSIONS> at{};
  for (size_t d = 0; d < extents_.size(); ++d) {
    at[d] = node % extents_[d];
    node /= extents_[d];
  }
  return at;
}

uint32_t Grid::behind(Link link) const {
  uint32_t stride = 1;
  for (uint32_t d = 0; d < link.direction / 2; ++d) stride *= extents_[d];
  const uint32_t extent = extents_[link.direction / 2];
  const uint32_t at = link.node / stride % extent;
  const uint32_t next = (at + (link.direction % 2 == 0 ? 1 : extent - 1)) % extent;
  return link.node - at * stride + next * stride;
}

void Grid::cut(uint32_t a, uint32_t b) {
  for (uint32_t direction = 0; direction < 2 * extents_.size(); ++direction) {
    if (behind({a, direction}) == b) cut_[a] |= static_cast<uint8_t>(1u << direction);
    if (behind({b, direction}) == a) cut_[b] |= static_cast<uint8_t>(1u << direction);
  }
  whole_ = false;
}

void Grid::kill(uint32_t node) {
  dead_[node] = true;
  whole_ = false;
}

bool Grid::usable(Link link) const {
  return (cut_[link.node] >> link.direction & 1) == 0 && !dead_[behind(link)];
}

Route Grid::route(uint32_t from, uint32_t to) const {
  if (dead_[from] || dead_[to]) return {};
  Route route = by_dimensions(from, to);
  if (whole_ || std::all_of(route.links.begin(), route.links.end(), [&](Link l) { return usable(l); }))
    return route;
  return by_breadth(from, to);
}

Route Grid::by_dimensions(uint32_t from, uint32_t to) const {
  const auto start = coordinates(from), end = coordinates(to);
  Route route{true, {}};
  uint32_t at = from;
  for (uint32_t d = 0; d < extents_.size(); ++d) {
    const uint32_t extent = extents_[d];
    const uint32_t up = (end[d] + extent - start[d]) % extent;
    const bool down = 2 * up > extent;  // halfway around, upwards is as short as downwards
    for (uint32_t hop = 0; hop < (down ? extent - up : up); ++hop) {
      route.links.push_back({at, 2 * d + (down ? 1u : 0u)});
      at = behind(route.links.back());
    }
  }
  return route;
}

Route Grid::by_breadth(uint32_t from, uint32_t to) const {
  std::vector<Link> came(nodes(), Link{UINT32_MAX, 0});
  std::deque<uint32_t> next{from};
  while (!next.empty() && came[to].node == UINT32_MAX) {
    const uint32_t node = next.front();
    next.pop_front();
    for (uint32_t direction = 0; direction < 2 * extents_.size(); ++direction) {
      const Link link{node, direction};
      const uint32_t other = behind(link);
      if (other == from || came[other].node != UINT32_MAX || !usable(link)) continue;
      came[other] = link;
      next.push_back(other);
    }
  }
  if (came[to].node == UINT32_MAX) return {};
  Route route{true, {}};
  for (uint32_t node = to; node != from; node = came[node].node) route.links.push_back(came[node]);
  std::reverse(route.links.begin(), route.links.end());
  return route;
}

}  // namespace pw::torus
