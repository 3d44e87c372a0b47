#include "path/staged/service.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "device/host/host.h"

namespace pw {

struct StagingService::Served {
  int rank = -1;
  ChannelHeader* header = nullptr;
  uint64_t taken = 0;   ///< requests
  uint64_t chunks = 0;  ///< passed so far
  bool busy = false;    ///< a request is under way
  Request request{};
  pw_status failure = PW_OK;  ///< of the request under way
  std::shared_ptr<Region> region;
  Queue* queue = nullptr;
  std::map<const Device*, std::unique_ptr<Queue>>
      queues;  ///< one a device that this channel's regions live on
  std::vector<Device*> pinned_for;
  ChunkCursor cursor;
  Chunk chunk;
  bool has_chunk = false;

  ~Served() {
    for (auto& [device, each] : queues) {  // nothing may be in flight when the chunks go away
      pw_status status;
      while (!each->idle(status)) sched_yield();
    }
    for (Device* device : pinned_for) device->unpin(header);
    if (header != nullptr) munmap(header, kChannelBytes);
  }

  [[nodiscard]] bool pending() const {
    return busy || header->requested.load(std::memory_order_acquire) != taken;
  }

  Queue* queue_for(Device& device) {
    auto& entry = queues[&device];
    if (entry == nullptr) {
      device.pin(header, kChannelBytes);
      pinned_for.push_back(&device);
      entry = device.make_queue();
    }
    return entry.get();
  }

  // The counters only grow if one queue at a time writes them: the last one ends before another device's
  // begins.
  void work_on(Device& device) {
    Queue* const next = queue_for(device);
    pw_status status;
    while (queue != nullptr && queue != next && !queue->idle(status)) sched_yield();
    queue = next;
  }

  // Its owner closes the region and waits until nobody uses it: the rest of the request passes by.
  void let_go_of_closed_region() {
    pw_status status;
    while (!queue->idle(status)) sched_yield();
    region.reset();
    failure = PW_STALE_KEY;
  }
};

void ring(Control& control) {
  control.doorbell.fetch_add(1, std::memory_order_seq_cst);
  if (control.asleep.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &control.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

StagingService::StagingService(Surroundings surroundings)
    : surroundings_(surroundings), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "pw-staging");
}

StagingService::~StagingService() {
  if (!surroundings_.control.mine()) {  // a forked child: the thread stayed with the parent
    thread_.detach();
    return;
  }
  stop_.store(true);
  ring(surroundings_.control.control());
  thread_.join();
}

void StagingService::run() {
  constexpr uint64_t kLinger =
      100'000;  // ns of looking before sleeping: a sleep and a wake cost about as much
  Control& control = surroundings_.control.control();
  uint64_t idle_since = now_ns();
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint32_t seen = control.doorbell.load(std::memory_order_seq_cst);
    bool busy = attach();
    for (auto entry = served_.begin(); entry != served_.end();) {
      Served& served = *entry->second;
      const bool left = served.header->left.load(std::memory_order_acquire) != 0 && !served.pending();
      if (left || surroundings_.team.lost(served.rank)) {
        entry = served_.erase(entry);
        continue;
      }
      busy |= step(served);
      busy |= served.busy;
      ++entry;
    }
    if (busy) {
      idle_since = now_ns();
      sched_yield();
    } else if (now_ns() - idle_since > kLinger) {
      sleep(seen);
      idle_since = now_ns();
    } else {
      sched_yield();
    }
  }
  served_.clear();
}

void StagingService::sleep(uint32_t doorbell_seen) {
  Control& control = surroundings_.control.control();
  control.asleep.store(1, std::memory_order_seq_cst);
  // The kernel compares the doorbell again, so that a ring between the look and the sleep is not missed. The
  // second's limit is for channels of ranks that died.
  const timespec limit{1, 0};
  if (!stop_.load()) syscall(SYS_futex, &control.doorbell, FUTEX_WAIT, doorbell_seen, &limit, nullptr, 0);
  control.asleep.store(0, std::memory_order_seq_cst);
}

bool StagingService::attach() {
  bool found = false;
  Control& control = surroundings_.control.control();
  const int mailboxes = std::min<int>(surroundings_.team.size(), kMailboxes);
  for (int i = 0; i < mailboxes; ++i) {
    Mailbox& mailbox = control.mailbox[i];
    const int32_t announced = mailbox.descriptor.load(std::memory_order_acquire);
    if (announced == 0) continue;
    mailbox.descriptor.store(0, std::memory_order_relaxed);
    const int rank = mailbox.rank.load(std::memory_order_relaxed);
    const uint64_t identity = mailbox.identity.load(std::memory_order_relaxed);
    if (rank < 0 || rank >= surroundings_.team.size()) continue;
    try {
      auto served = std::make_unique<Served>();
      served->rank = rank;
      const int process = surroundings_.importer.card(rank).process;
      served->header = reinterpret_cast<ChannelHeader*>(
          map_memfd_of(process, announced - 1, identity, kChannelBytes, "a staging channel"));
      served->header->attached.store(1, std::memory_order_release);
      served_[rank] = std::move(served);
      found = true;
    } catch (const Error& error) {
      log(LogLevel::warning, format("cannot serve the staging channel of rank {}: {}", rank, error.what()));
      mailbox.refused.store(error.status(), std::memory_order_release);
    }
  }
  return found;
}

bool StagingService::take_request(Served& served) {
  ChannelHeader& header = *served.header;
  if (header.requested.load(std::memory_order_acquire) == served.taken) return false;
  served.request = header.request[served.taken % kRequests];
  served.busy = true;
  served.failure = PW_OK;
  served.request.chunk_bytes = std::clamp<uint64_t>(served.request.chunk_bytes, 1, kRingBytes);
  served.cursor = ChunkCursor(served.request.layout, served.request.chunk_bytes);
  served.has_chunk = served.cursor.next(served.chunk);
  served.region = surroundings_.registry.find(served.request.slot, served.request.generation);
  if (served.region == nullptr) {
    served.failure = PW_STALE_KEY;
    served.work_on(host_device());
    return true;
  }
  try {
    served.work_on(served.region->device());
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
    served.failure = error.status();
    served.work_on(host_device());
  }
  return true;
}

bool StagingService::step(Served& served) {
  if (!served.busy && !take_request(served)) return false;
  if (served.region != nullptr && served.region->closed()) served.let_go_of_closed_region();
  ChannelHeader& header = *served.header;
  const bool fill = served.request.op == Op::get;
  if (!served.has_chunk) {
    finish_request(served);
    return true;
  }
  if (fill) {
    if (served.chunks - header.drained.load(std::memory_order_acquire) >=
        kRingBytes / served.request.chunk_bytes)
      return false;
  } else if (header.filled.load(std::memory_order_acquire) <= served.chunks) {
    return false;
  }
  if (served.failure ==
      PW_OK) {  // a failed request still passes its chunks, so that the initiator does not wait
    std::byte* region = served.region->address() + served.request.offset;
    const Copy copy = chunk_copy(served.chunk, chunk_at(&header, served.chunks, served.request.chunk_bytes),
                                 region, fill, !fill);
    served.failure = served.queue->copy(copy, Method::engine);
  }
  ++served.chunks;
  auto& counter = fill ? header.filled : header.drained;
  served.queue->write_aside(reinterpret_cast<uint64_t*>(&counter), served.chunks);
  served.has_chunk = served.cursor.next(served.chunk);
  return true;
}

void StagingService::raise(Served& served) {
  const Request& request = served.request;
  Control& control = surroundings_.control.control();
  if (request.word >= kSignalWords || request.signal_slot >= kRegionSlots ||
      control.generation[request.signal_slot].load(std::memory_order_acquire) != request.signal_generation) {
    served.failure = PW_STALE_KEY;  // the word may count for another signal by now
    return;
  }
  try {
    if (served.region->device().id().kind != PW_HOST)
      surroundings_.importer.pin_control(surroundings_.team.rank(), served.region->device());
    served.failure =
        served.queue->write(reinterpret_cast<uint64_t*>(&control.signal[request.word]), request.raised);
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
    served.failure = error.status();
  }
}

void StagingService::finish_request(Served& served) {
  ChannelHeader& header = *served.header;
  ++served.taken;
  if (served.failure == PW_OK && served.request.raise != 0) raise(served);
  if (served.failure != PW_OK) {
    header.failure.store(static_cast<uint32_t>(served.failure), std::memory_order_relaxed);
    header.failed.fetch_add(1, std::memory_order_release);
  }
  served.queue->write(reinterpret_cast<uint64_t*>(&header.completed), served.taken);
  served.busy = false;
  served.region.reset();
}

}  // namespace pw
