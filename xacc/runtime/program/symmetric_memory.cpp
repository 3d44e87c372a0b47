#include "xacc/runtime/program/symmetric_memory.h"

#include <utility>
#include <vector>

#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

/// Gathers keys, which may have different lengths, from the nodes that execute.
std::vector<peerway::Key> gather_keys(peerway::Key mine) {
  Program& program = pwx::program();
  const Set& set = program.executing();
  if (&set == &program.all()) return program.team.all_gather(mine);
  const auto ranks = static_cast<size_t>(program.size());
  const size_t own_length = mine.size();
  std::vector<size_t> lengths(ranks);
  std::vector<peerway::Key> keys(ranks);
  const auto exchange = [&](const void* own, size_t own_bytes, auto place_of) {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (const int rank : set.ranks) {
      if (rank == program.rank()) continue;
      const auto [place, bytes] = place_of(static_cast<size_t>(rank));
      out.push_back({rank, own, own_bytes});
      in.push_back({rank, place, bytes});
    }
    program.mail.exchange(out, in);
  };
  exchange(&own_length, sizeof own_length,
           [&](size_t rank) { return std::pair<void*, size_t>(&lengths[rank], sizeof(size_t)); });
  exchange(mine.data(), mine.size(), [&](size_t rank) {
    keys[rank].resize(lengths[rank]);
    return std::pair<void*, size_t>(keys[rank].data(), lengths[rank]);
  });
  keys[static_cast<size_t>(program.rank())] = std::move(mine);
  return keys;
}

}  // namespace

SymmetricMemory::SymmetricMemory(peerway::Region memory)
    : memory_(std::move(memory)),
      keys_(gather_keys(memory_.key())),
      remotes_(static_cast<size_t>(program().size())) {}

peerway::Remote& SymmetricMemory::at(int rank) {
  auto& there = remotes_[static_cast<size_t>(rank)];
  const peerway::Key& key = keys_[static_cast<size_t>(rank)];
  if (key.empty()) refuse("node ", rank + 1, " did not execute where this coarray was made");
  if (!there) there = program().context.import(key);
  return *there;
}

}  // namespace pwx
