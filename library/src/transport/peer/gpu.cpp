#include "transport/peer/gpu.h"

#include "base/status.h"

namespace pw {

PeerGpu::~PeerGpu() {
  for (auto& [where, entry] : queues_) drain(*entry->queue);
}

Offer PeerGpu::offer_for(const Pair& pair) const {
  if (pair.local.kind == PW_HOST && pair.remote.kind == PW_HOST)
    return Offer::unsuited("there is no GPU at either end; the CPU copies (peer/shm, peer/cma)");
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  if (!pair.reachable) return Offer::hindered(pair.why_not_reachable);
  if (by_ == CopyBy::kernel && !pair.kernels) return Offer::hindered(pair.why_no_kernels);
  return Offer::yes();
}

PeerGpu::DeviceQueue& PeerGpu::queue_to(int rank, Device& device) {
  std::lock_guard lock(mutex_);
  auto& entry = queues_[{rank, &device}];
  if (entry == nullptr) {
    entry = std::make_unique<DeviceQueue>();
    entry->queue = device.make_queue();
    used_.store(true, std::memory_order_release);
  }
  return *entry;
}

/// Starts the transfer on the queue for its rank and device, to which `enqueue` gives the copy.
template <typename Enqueue>
pw_status PeerGpu::start_with(const Transfer& transfer, Enqueue&& enqueue) {
  Remote& remote = *transfer.remote;
  Region& local = *transfer.local;
  Device& device = worker(local, remote);
  if (local.device().id().kind == PW_HOST) local.pin_for(device);
  DeviceQueue& towards = queue_to(remote.rank(), device);
  const pw_status status =
      enqueue(*towards.queue, copy_between(transfer, local.address() + transfer.local_offset,
                                           remote.address_on(device) + transfer.remote_offset));
  towards.started.fetch_add(1, std::memory_order_release);
  return status;
}

pw_status PeerGpu::start(const Transfer& transfer) {
  return start_with(transfer, [&](Queue& queue, const Copy& copy) { return queue.copy(copy, by_); });
}

bool PeerGpu::can_start_and_store_word(const Transfer& transfer, Remote& signal) {
  return signal.word_on(worker(*transfer.local, *transfer.remote)) != nullptr;
}

pw_status PeerGpu::start_and_store_word(const Transfer& transfer, SignalTurn& turn) {
  uint64_t* word = turn.signal().word_on(worker(*transfer.local, *transfer.remote));
  const pw_status status = start_with(transfer, [&](Queue& queue, const Copy& copy) {
    return queue.copy_and_write(copy, by_, word, turn.total());
  });
  if (status == PW_OK) turn.stored();
  return status;
}

Mark PeerGpu::mark(int rank) {
  if (!used_.load(std::memory_order_acquire)) return 0;
  std::lock_guard lock(mutex_);
  for (auto& [where, entry] : queues_)
    if (where.first == rank && entry->started.load(std::memory_order_acquire) > entry->complete) return 1;
  return 0;
}

// The device finishes what it was given whether or not the peer lives, and uses the memory until then. So
// neither a loss nor a close ends the wait. `started` is read before the queue is asked: if the queue is
// idle, all of these transfers are complete.
bool PeerGpu::reached(int rank, Mark) {
  std::lock_guard lock(mutex_);
  bool all = true;
  for (auto& [where, entry] : queues_) {
    const uint64_t started = entry->started.load(std::memory_order_acquire);
    if (where.first != rank || started == entry->complete.load(std::memory_order_relaxed)) continue;
    pw_status status = PW_OK;
    if (entry->queue->idle(status)) {
      entry->complete.store(started, std::memory_order_relaxed);
      if (entry->failed == PW_OK) entry->failed = status;
      if (status != PW_OK) failure_ = last_error_message();
    } else {
      all = false;
    }
  }
  return all;
}

pw_status PeerGpu::outcome(int rank, Mark) {
  std::lock_guard lock(mutex_);
  for (auto& [where, entry] : queues_)
    if (const pw_status failed = where.first == rank ? std::exchange(entry->failed, PW_OK) : PW_OK;
        failed != PW_OK)
      return fail(failed, failure_);
  return PW_OK;
}

}  // namespace pw
