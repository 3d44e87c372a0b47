// Signals between pairs of ranks, as counts of messages: for each pair, the signal that this rank waits for
// and the one at the peer that it notifies.
#ifndef HPL_COUNTER_PEERWAY_H
#define HPL_COUNTER_PEERWAY_H

#include <algorithm>
#include <optional>
#include <peerway/peerway.hpp>
#include <vector>

namespace hpl {

struct Counter {
  peerway::Signal mine;
  std::optional<peerway::Remote> theirs;
  uint64_t used = 0;  // how many notifications of `mine` were taken

  [[nodiscard]] bool arrived() const { return mine.value() > used; }
  void take(peerway::Timeout timeout) { peerway::check(mine.wait(++used, timeout)); }
};

/// Collective: makes `each` counters for each rank of `group`, in this order. Every rank is in one group.
inline std::vector<Counter> make_counters(peerway::Team& team, peerway::Context& context,
                                          const std::vector<int>& group, size_t each,
                                          peerway::Timeout timeout) {
  constexpr size_t kWidth = PW_KEY_MAX + sizeof(uint64_t);
  std::vector<Counter> made;
  std::vector<std::byte> mine;
  for (const int peer : group)
    for (size_t i = 0; i < each; ++i) {
      const peerway::Key key = made.emplace_back(context.signal(peer)).mine.key();
      const uint64_t length = key.size();
      std::byte* entry = &*mine.insert(mine.end(), kWidth, std::byte{});
      std::copy_n(reinterpret_cast<const std::byte*>(&length), sizeof length, entry);
      std::copy(key.begin(), key.end(), entry + sizeof length);
    }
  const auto all = team.all_gather(mine, timeout);
  const auto me = static_cast<size_t>(std::find(group.begin(), group.end(), team.rank()) - group.begin());
  for (size_t i = 0; i < made.size(); ++i) {
    const std::byte* entry = &all[static_cast<size_t>(group[i / each])][(me * each + i % each) * kWidth];
    uint64_t length = 0;
    std::copy_n(entry, sizeof length, reinterpret_cast<std::byte*>(&length));
    made[i].theirs.emplace(context.import({entry + sizeof length, length}));
  }
  return made;
}

}  // namespace hpl

#endif
