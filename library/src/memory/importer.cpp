#include "memory/importer.h"

#include <algorithm>

#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

// A host mapping that is pinned for one more device.
class PinnedMapping final : public Mapping {
 public:
  PinnedMapping(std::shared_ptr<Mapping> host, uint64_t bytes, Device& device)
      : host_(std::move(host)), device_(device) {
    address_ = host_->address();
    device_.pin(address_, bytes);
  }
  ~PinnedMapping() override { device_.unpin(address_); }

 private:
  std::shared_ptr<Mapping> host_;
  Device& device_;
};

// Removes expired entries each time the map has doubled, because imports come and go for ever.
template <typename Map>
void sweep(Map& map, size_t& limit) {
  if (map.size() < limit) return;
  std::erase_if(map, [](const auto& entry) { return entry.second.expired(); });
  limit = 2 * map.size() + 64;
}

}  // namespace

Importer::Importer(ControlSegment& own, int own_rank, std::span<const ProcessFacts> processes)
    : own_(own), own_rank_(own_rank) {
  if (!processes.empty()) set_processes(processes);
}

void Importer::set_processes(std::span<const ProcessFacts> processes) {
  const uint64_t host = processes[static_cast<size_t>(own_rank_)].host_id;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  neighbours_.clear();
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    const ProcessFacts& process = processes[rank];
    if (process.host_id != host) continue;
    if (static_cast<int>(rank) == own_rank_) local_rank_ = static_cast<int>(neighbours_.size());
    neighbours_.push_back(
        {static_cast<int32_t>(rank), process.process, process.control_identity, process.control});
    CPU_OR(&cpus, &cpus, &process.cpus);
  }
  neighbours_.shrink_to_fit();
  // CPU_COUNT is 0 if the machine has more CPUs than the set can hold.
  oversubscribed_ = static_cast<int>(neighbours_.size()) > std::max(CPU_COUNT(&cpus), 1);
}

const Neighbour* Importer::neighbour(int rank) const {
  const auto neighbour = std::ranges::lower_bound(neighbours_, rank, {}, &Neighbour::rank);
  return neighbour != neighbours_.end() && neighbour->rank == rank ? &*neighbour : nullptr;
}

Importer::~Importer() {
  for (auto& [where, segment] : pinned_controls_) where.second->unpin(segment.get());
}

std::shared_ptr<Control> Importer::control(int rank) {
  if (!same_host(rank)) return nullptr;
  std::lock_guard lock(mutex_);
  auto& entry = controls_[rank];
  if (entry == nullptr) {
    if (same_process(rank))
      entry = {&own_.control(), [](Control*) {}};
    else
      entry = {map_control(*neighbour(rank)), unmap_control};
  }
  return entry;
}

std::shared_ptr<Mapping> Importer::map(int rank, const Export& exported, Device& device) {
  const bool host_memory = exported.handle == Handle::memfd || exported.handle == Handle::process;
  std::lock_guard lock(mutex_);
  sweep(mappings_, mappings_limit_);
  auto& entry = mappings_[{rank, exported.allocation, exported.bytes,
                           exported.handle == Handle::process ? exported.address : 0, &device}];
  if (auto mapping = entry.lock()) return mapping;
  std::shared_ptr<Mapping> mapping;
  if (host_memory) {
    if (same_process(rank))
      mapping = std::make_shared<OwnMemory>(exported);
    else
      mapping = host_device().import(exported);
    if (device.id().kind != PW_HOST)
      mapping = std::make_shared<PinnedMapping>(mapping, exported.bytes, device);
  } else {
    mapping = device.import(exported);
  }
  entry = mapping;
  return mapping;
}

std::shared_ptr<SignalSender> Importer::sender(int rank, uint32_t slot, uint64_t generation,
                                               const std::atomic<uint64_t>* word) {
  std::lock_guard lock(mutex_);
  sweep(senders_, senders_limit_);
  auto& entry = senders_[{rank, slot, generation}];
  if (auto sender = entry.lock()) return sender;
  auto sender = std::make_shared<SignalSender>();
  if (word != nullptr)
    sender->notified = word->load(std::memory_order_acquire);  // an earlier import may have notified the
                                                               // signal
  sender->known = word != nullptr;
  entry = sender;
  return sender;
}

std::shared_ptr<SignalSender> Importer::device_sender(int rank, uint32_t slot, uint64_t generation) {
  std::lock_guard lock(mutex_);
  if (device_senders_.size() >= device_senders_limit_) {
    std::erase_if(device_senders_, [&](const auto& entry) {
      const auto& [of, its_slot, its_generation] = entry.first;
      const auto control = controls_.find(of);
      return control != controls_.end() && control->second != nullptr &&
             control->second->generation[its_slot].load(std::memory_order_acquire) != its_generation;
    });
    device_senders_limit_ = 2 * device_senders_.size() + 64;
  }
  auto& entry = device_senders_[{rank, slot, generation}];
  if (entry == nullptr) {
    entry = std::make_shared<SignalSender>();
    entry->known = true;
  }
  return entry;
}

void Importer::pin_control(int rank, Device& device) {
  const auto segment = control(rank);
  std::lock_guard lock(mutex_);
  auto& entry = pinned_controls_[{rank, &device}];
  if (entry != nullptr) return;
  device.pin(segment.get(), sizeof(Control));
  entry = segment;
  if (device.id().kind == PW_HOST) return;
  segment->sleepers.unseen.store(1);  // a GPU can write a word there, and wakes nobody
  wake(segment->sleepers);            // sleeping threads must notice the change
}

}  // namespace pw
