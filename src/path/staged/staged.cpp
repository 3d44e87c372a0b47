#include "path/staged/staged.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "device/host/host.h"
#include "team/wait.h"

namespace pw {
namespace {
constexpr uint64_t kFirstChunkBytes = uint64_t{256} << 10;  // until a route table brings a measured size
}  // namespace

/// The initiator's end of a channel.
struct Staged::Channel {
  int rank;
  int descriptor = -1;
  ChannelHeader* header = nullptr;
  std::shared_ptr<Control> target;
  std::mutex mutex;  ///< one transfer at a time
  uint64_t requested = 0;
  uint64_t chunk_bytes = 0;  ///< of the slots that the ring is cut into
  uint64_t chunks = 0;       ///< passed so far
  uint64_t failed = 0;       ///< failures already reported
  std::map<const Device*, std::unique_ptr<Queue>> queues;
  std::vector<Device*> pinned_for;

  ~Channel() {
    for (auto& [device, queue] : queues) {
      pw_status status;
      while (!queue->idle(status)) sched_yield();
    }
    for (Device* device : pinned_for) device->unpin(header);
    munmap(header, kChannelBytes);
    close(descriptor);
  }

  Queue& queue_for(Device& device) {
    auto& entry = queues[&device];
    if (entry == nullptr) {
      device.pin(header, kChannelBytes);
      pinned_for.push_back(&device);
      entry = device.make_queue();
    }
    return *entry;
  }
};

Staged::Staged(Surroundings surroundings)
    : surroundings_(surroundings), chunk_bytes_(kFirstChunkBytes), service_(surroundings) {}

Staged::~Staged() = default;

Offer Staged::probe(const Pair& pair) const {
  if (!pair.same_host) return {false, "the peer is on another host"};
  return {true, {}};
}

void Staged::set_chunk_bytes(uint64_t bytes) {
  chunk_bytes_.store(std::clamp<uint64_t>(bytes / 4096 * 4096, 4096, kLargestChunk));
}

Staged::Channel& Staged::channel_to(int rank) {
  std::lock_guard lock(mutex_);
  auto& entry = channels_[rank];
  if (entry != nullptr) return *entry;
  auto channel = std::make_unique<Channel>();
  channel->rank = rank;
  channel->target = surroundings_.importer.control(rank);
  channel->descriptor = make_memfd("peerway-staging", kChannelBytes);
  void* address = mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, channel->descriptor, 0);
  if (address == MAP_FAILED)
    throw Error(PW_NO_MEMORY, "peerway: mapping a staging channel" + errno_text(errno));
  channel->header = static_cast<ChannelHeader*>(address);
  const int own_rank = surroundings_.team.rank();
  Mailbox& mailbox = channel->target->mailbox[static_cast<uint32_t>(own_rank) % kMailboxes];
  mailbox.process.store(getpid(), std::memory_order_relaxed);
  mailbox.rank.store(own_rank, std::memory_order_relaxed);
  mailbox.descriptor.store(channel->descriptor + 1, std::memory_order_release);
  ring(*channel->target);
  entry = std::move(channel);
  return *entry;
}

pw_status Staged::failure_of(const Channel& channel) const {
  const auto status = static_cast<pw_status>(channel.header->failure.load());
  return fail(status, format("peerway: rank {} could not serve a staged transfer: {}", channel.rank,
                             status == PW_STALE_KEY ? "the region was closed" : pw_status_name(status)));
}

pw_status Staged::post(Channel& channel, const Transfer& transfer, const Raise* raise) {
  ChannelHeader& header = *channel.header;
  const pw_status room = wait_until(
      surroundings_.team, channel.rank, PW_FOREVER, "room in the staging queue",
      [&] { return channel.requested - header.completed.load(std::memory_order_acquire) < kRequests; });
  if (room != PW_OK) return room;
  if (const uint64_t wanted = chunk_bytes_.load(std::memory_order_relaxed); channel.chunk_bytes != wanted) {
    const pw_status drained =
        wait_until(surroundings_.team, channel.rank, PW_FOREVER, "the staging ring to drain",
                   [&] { return header.drained.load(std::memory_order_acquire) == channel.chunks; });
    if (drained != PW_OK) return drained;
    channel.chunk_bytes = wanted;
  }
  const Key& key = transfer.remote->key;
  Request& request = header.request[channel.requested % kRequests];
  request = Request{};
  request.op = transfer.op;
  request.slot = key.slot;
  request.generation = key.generation;
  request.offset = transfer.remote_offset;
  request.layout = transfer.layout;
  request.chunk_bytes = channel.chunk_bytes;
  if (raise != nullptr) {
    request.raise = 1;
    request.word = static_cast<uint32_t>(raise->signal->word() - channel.target->signal);
    request.raised = raise->signal->sender()->raised += raise->by;
  }
  header.requested.store(++channel.requested, std::memory_order_release);
  ring(*channel.target);
  return PW_OK;
}

pw_status Staged::move_chunks(Channel& channel, const Transfer& transfer) {
  ChannelHeader& header = *channel.header;
  Queue& queue = channel.queue_for(transfer.local->device());
  const bool fill = transfer.op == Op::put;
  std::byte* local = transfer.local->address() + transfer.local_offset;
  const uint64_t chunk_bytes = channel.chunk_bytes, slots = kRingBytes / chunk_bytes;
  ChunkCursor cursor(transfer.layout, chunk_bytes);
  for (Chunk chunk; cursor.next(chunk);) {
    const pw_status ready = wait_until(surroundings_.team, channel.rank, PW_FOREVER, "a staging chunk", [&] {
      return fill ? channel.chunks - header.drained.load(std::memory_order_acquire) < slots
                  : header.filled.load(std::memory_order_acquire) > channel.chunks;
    });
    if (ready != PW_OK) return ready;
    const Copy copy = chunk_copy(chunk, chunk_at(&header, channel.chunks, chunk_bytes), local, fill, !fill);
    if (const pw_status status = queue.copy(copy, Method::engine); status != PW_OK) return status;
    ++channel.chunks;
    auto& counter = fill ? header.filled : header.drained;
    if (const pw_status status = queue.write(reinterpret_cast<uint64_t*>(&counter), channel.chunks);
        status != PW_OK)
      return status;
  }
  return fill ? PW_OK : finish_get(channel, queue);
}

// The chunks of a get are drained by this rank's queue, which nobody else sees: wait for it here.
pw_status Staged::finish_get(Channel& channel, Queue& queue) {
  pw_status status = PW_OK;
  const pw_status waited = wait_until(surroundings_.team, channel.rank, PW_FOREVER, "a staged get",
                                      [&] { return queue.idle(status); });
  return waited != PW_OK ? waited : status;
}

pw_status Staged::start(const Transfer& transfer, const Raise* raise) {
  Channel& channel = channel_to(transfer.remote->rank());
  std::lock_guard lock(channel.mutex);
  if (raise != nullptr) {
    std::unique_lock<SpinLock> raising;
    if (const pw_status status = begin_raise(*raise, this, raising); status != PW_OK) return status;
    if (const pw_status status = post(channel, transfer, raise); status != PW_OK) return status;
  } else if (const pw_status status = post(channel, transfer, nullptr); status != PW_OK) {
    return status;
  }
  return move_chunks(channel, transfer);
}

pw_status Staged::flush(int rank, uint64_t deadline_ns) {
  Channel* channel = nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto found = channels_.find(rank);
    if (found == channels_.end()) return PW_OK;
    channel = found->second.get();
  }
  std::lock_guard lock(channel->mutex);
  ChannelHeader& header = *channel->header;
  const pw_status status =
      wait_until(surroundings_.team, rank, deadline_ns, "staged transfers to complete",
                 [&] { return header.completed.load(std::memory_order_acquire) == channel->requested; });
  if (status != PW_OK) return status;
  const uint64_t failed = header.failed.load(std::memory_order_acquire);
  if (failed == channel->failed) return PW_OK;
  channel->failed = failed;
  return failure_of(*channel);
}

}  // namespace pw
