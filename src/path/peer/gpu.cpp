#include "path/peer/gpu.h"

#include "base/status.h"

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
  if (raise == nullptr) {
    const pw_status status = lane.queue->copy(copy, method_);
    lane.started.fetch_add(1, std::memory_order_release);
    return status;
  }
  uint64_t* word = raise->signal->word_on(device);
  std::unique_lock<SpinLock> raising;
  if (const pw_status status = begin_raise(*raise, this, raising); status != PW_OK) return status;
  uint64_t& raised = raise->signal->sender()->raised;
  const pw_status status = lane.queue->copy_and_write(copy, method_, word, raised + raise->by);
  lane.started.fetch_add(1, std::memory_order_release);
  if (status == PW_OK) raised += raise->by;
  return status;
}

Mark PeerGpu::mark(int rank) {
  if (!used_.load(std::memory_order_acquire)) return 0;
  std::lock_guard lock(mutex_);
  for (auto& [where, lane] : lanes_)
    if (where.first == rank && lane->started.load(std::memory_order_acquire) > lane->complete) return 1;
  return 0;
}

// The device finishes what it was given whether or not the peer lives, so neither a loss nor a close ends
// this: until then it uses the memory. A queue that is idle has done all that was counted before the look.
bool PeerGpu::reached(int rank, Mark) {
  std::lock_guard lock(mutex_);
  bool all = true;
  for (auto& [where, lane] : lanes_) {
    const uint64_t started = lane->started.load(std::memory_order_acquire);
    if (where.first != rank || started == lane->complete.load(std::memory_order_relaxed)) continue;
    pw_status status = PW_OK;
    if (lane->queue->idle(status)) {
      lane->complete.store(started, std::memory_order_relaxed);
      if (lane->failed == PW_OK) lane->failed = status;
      if (status != PW_OK) failure_ = last_error_message();
    } else {
      all = false;
    }
  }
  return all;
}

pw_status PeerGpu::outcome(int rank, Mark) {
  std::lock_guard lock(mutex_);
  for (auto& [where, lane] : lanes_)
    if (const pw_status failed = where.first == rank ? std::exchange(lane->failed, PW_OK) : PW_OK;
        failed != PW_OK)
      return fail(failed, failure_);
  return PW_OK;
}

}  // namespace pw
