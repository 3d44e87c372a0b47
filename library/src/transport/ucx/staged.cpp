#include "transport/ucx/staged.h"

#include <vector>

#include "base/clock.h"

namespace pw {

using namespace ucx;

UcxStaged::UcxStaged(Surroundings surroundings, Ucx& ucx)
    : Path(Completes::later),
      surroundings_(surroundings),
      ucx_(ucx),
      service_(surroundings, ucx, [this](RingNote note) {
        const int rank = note.rank;
        if (StagedInitiator* initiator = known_initiator(rank)) initiator->answer(std::move(note));
      }) {
  surroundings_.progress.add(service_);
  surroundings_.progress.add(*this);
}

Offer UcxStaged::offer_for(const Pair& pair, const Facts& facts) {
  if (!facts.running) return without_ucx(pair, facts);
  return Offer::yes();
}

StagedInitiator& UcxStaged::initiator_to(int rank) {
  std::lock_guard lock(mutex_);
  auto& initiator = initiators_[rank];
  if (initiator == nullptr)
    initiator = std::make_unique<StagedInitiator>(surroundings_, ucx_.shared_engine(), rank, waiting_);
  return *initiator;
}

StagedInitiator* UcxStaged::known_initiator(int rank) {
  std::lock_guard lock(mutex_);
  const auto entry = initiators_.find(rank);
  return entry == initiators_.end() ? nullptr : entry->second.get();
}

bool UcxStaged::poll() {
  bool happened = ucx_.engine() != nullptr && ucx_.engine()->poll();
  if (!has_work()) return happened;
  std::vector<StagedInitiator*> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [rank, initiator] : initiators_) all.push_back(initiator.get());
  }
  bool moved = false;
  for (StagedInitiator* initiator : all) moved |= initiator->poll();
  if (moved) happened_ns_.store(now_ns(), std::memory_order_relaxed);
  return happened || moved;
}

// Neither a device that copies a chunk nor a network that stores a counter wakes anybody, so this source asks
// for naps.
Armed UcxStaged::arm(bool) {
  std::lock_guard lock(mutex_);
  bool waits = false;
  for (const auto& [rank, initiator] : initiators_) waits |= initiator->waits();
  if (!waits) return {};
  const uint64_t waited = now_ns() - happened_ns_.load(std::memory_order_relaxed);
  return {-1, surroundings_.progress.waiting().nap_ns(Wakes::perhaps, waited)};
}

Mark UcxStaged::mark(int rank) {
  const StagedInitiator* initiator = known_initiator(rank);
  return initiator == nullptr ? 0 : initiator->mark();
}

}  // namespace pw
