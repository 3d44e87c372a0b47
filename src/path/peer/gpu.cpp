#include "path/peer/gpu.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "team/wait.h"

namespace pw {

PeerGpu::~PeerGpu() {
  for (auto& [where, lane] : lanes_) drain(*lane->queue);
}

Offer PeerGpu::probe(const Pair& pair) const {
  if (pair.local.kind == PW_HOST && pair.remote.kind == PW_HOST)
    return Offer::unsuited("there is no GPU at either end; the processor copies (peer/shm, peer/cma)");
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  if (!pair.reachable) return Offer::hindered(pair.why_not_reachable);
  if (method_ == Method::kernel && !pair.kernels) return Offer::hindered(pair.why_no_kernels);
  return Offer::yes();
}

PeerGpu::Lane& PeerGpu::lane(int rank, Device& device) {
  std::lock_guard lock(mutex_);
  auto& entry = lanes_[{rank, &device}];
  if (entry == nullptr) {
    entry = std::make_unique<Lane>();
    entry->queue = device.make_queue();
    used_.store(true, std::memory_order_release);
  }
  return *entry;
}

pw_status PeerGpu::start(const Transfer& transfer, const Raise* raise) {
  Remote& remote = *transfer.remote;
  Region& local = *transfer.local;
  Device& device = worker(local, remote);
  if (local.device().id().kind == PW_HOST) local.pin_for(device);
  Lane& lane = this->lane(remote.rank(), device);
  const Copy copy = copy_between(transfer, local.address() + transfer.local_offset,
                                 remote.address_on(device) + transfer.remote_offset);
  lane.busy.store(true, std::memory_order_relaxed);
  if (raise == nullptr) return lane.queue->copy(copy, method_);
  uint64_t* word = raise->signal->word_on(device);
  std::unique_lock<SpinLock> raising;
  if (const pw_status status = begin_raise(*raise, this, raising); status != PW_OK) return status;
  uint64_t& raised = raise->signal->sender()->raised;
  const pw_status status = lane.queue->copy_and_write(copy, method_, word, raised + raise->by);
  if (status == PW_OK) raised += raise->by;
  return status;
}

pw_status PeerGpu::flush(int rank, uint64_t deadline_ns) {
  if (!used_.load(std::memory_order_acquire)) return PW_OK;
  std::vector<Lane*> lanes;
  {
    std::lock_guard lock(mutex_);
    for (auto& [where, lane] : lanes_)
      if (where.first == rank && lane->busy.load(std::memory_order_relaxed)) lanes.push_back(lane.get());
  }
  for (Lane* lane : lanes) {
    pw_status status = PW_OK;
    lane->busy.store(false, std::memory_order_relaxed);
    // The device finishes what it was given whether or not the peer lives: only the deadline ends this wait
    // early.
    const pw_status waited = wait_until(
        *surroundings_.control.waiting(),
        {surroundings_.team, surroundings_.team.rank(), deadline_ns, "copies of a GPU to complete"},
        [&] { return lane->queue->idle(status); }, Wakes::perhaps);
    if (waited != PW_OK) lane->busy.store(true, std::memory_order_relaxed);
    if (waited != PW_OK) return waited;
    if (status != PW_OK) return status;
  }
  return PW_OK;
}

}  // namespace pw
