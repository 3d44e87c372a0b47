#include "transport/staged/staged.h"

#include <algorithm>

#include "base/clock.h"

namespace pw {
namespace {
constexpr uint64_t kFirstChunkBytes = uint64_t{256} << 10;  // until a route table brings a measured size
}  // namespace

StagedTransport::StagedTransport(const Surroundings& surroundings)
    : surroundings_(surroundings),
      service_(surroundings.team, surroundings.control, surroundings.importer, surroundings.registry) {
  surroundings.progress.add(service_);
}

std::vector<std::unique_ptr<Path>> StagedTransport::paths() {
  std::vector<std::unique_ptr<Path>> paths;
  paths.push_back(std::make_unique<Staged>(surroundings_));
  return paths;
}

Staged::Staged(Surroundings surroundings)
    : Path(Completes::later),
      surroundings_(surroundings),
      chunk_bytes_(kFirstChunkBytes),
      by_rank_(static_cast<size_t>(surroundings.team.size())) {
  surroundings_.progress.add(*this);
}

Offer Staged::offer_for(const Pair& pair) {
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  return Offer::yes();
}

void Staged::set_chunk_bytes(uint64_t bytes) {
  chunk_bytes_.store(std::clamp<uint64_t>(bytes / 4096 * 4096, 4096, kLargestChunk));
}

StagingInitiator& Staged::initiator_to(int rank) {
  if (StagingInitiator* initiator = known_initiator(rank)) return *initiator;
  std::lock_guard lock(making_);
  if (StagingInitiator* initiator = known_initiator(rank)) return *initiator;
  all_.push_back(std::make_unique<StagingInitiator>(surroundings_, rank, waiting_, chunk_bytes_));
  by_rank_[static_cast<size_t>(rank)].store(all_.back().get(), std::memory_order_release);
  return *all_.back();
}

bool Staged::poll() {
  if (!has_work()) return false;
  const std::unique_lock lock(making_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  bool happened = false;
  for (const auto& initiator : all_) happened |= initiator->poll();
  if (happened) happened_ns_.store(now_ns(), std::memory_order_relaxed);
  return happened;
}

// Targets write to this rank's wakeup pipe when they have made progress, but not when a GPU moves the chunks.
Armed Staged::arm(bool) {
  const std::lock_guard lock(making_);
  bool waits = false, by_gpu = false;
  for (const auto& initiator : all_) {
    if (!initiator->waits()) continue;
    waits = true;
    by_gpu |= initiator->by_gpu();
  }
  if (!waits) return {};
  const uint64_t waited = now_ns() - happened_ns_.load(std::memory_order_relaxed);
  return {-1, surroundings_.progress.waiting().nap_ns(by_gpu ? Wakes::perhaps : Wakes::always, waited)};
}

Mark Staged::mark(int rank) {
  const StagingInitiator* initiator = known_initiator(rank);
  return initiator == nullptr ? 0 : initiator->mark();
}

}  // namespace pw
