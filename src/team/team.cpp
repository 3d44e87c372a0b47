#include "team/team.h"

#include <algorithm>
#include <cstring>

namespace pw {

std::vector<std::vector<std::byte>> Team::all_gather_parts(std::span<const std::byte> mine,
                                                           uint64_t timeout_ns) {
  const uint64_t length = mine.size();
  const auto lengths = all_gather(std::as_bytes(std::span(&length, 1)), timeout_ns);
  std::vector<uint64_t> each(static_cast<size_t>(size()));
  std::memcpy(each.data(), lengths.data(), lengths.size());
  const uint64_t longest = *std::ranges::max_element(each);
  std::vector<std::byte> padded(mine.begin(), mine.end());
  padded.resize(longest);
  const auto all = all_gather(padded, timeout_ns);
  std::vector<std::vector<std::byte>> parts;
  for (size_t rank = 0; rank < each.size(); ++rank) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * longest);
    parts.emplace_back(first, first + static_cast<std::ptrdiff_t>(each[rank]));
  }
  return parts;
}

}  // namespace pw
