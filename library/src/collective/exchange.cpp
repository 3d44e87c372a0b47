#include "collective/exchange.h"

#include <numeric>

namespace pw::collective {

std::vector<int32_t> group_of(const Team& team, const int* ranks, size_t count) {
  if (ranks == nullptr) {
    std::vector<int32_t> all(static_cast<size_t>(team.size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int32_t> group(ranks, ranks + count);
  check_group(team, group, "a collective is to be made");
  return group;
}

}  // namespace pw::collective
