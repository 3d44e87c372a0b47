#include "path/staged/staged.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/config.h"
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
  uint64_t chunk_bytes = 0;            ///< of the slots that the ring is cut into
  uint64_t chunks = 0;                 ///< passed so far
  pw_status broken = PW_OK;            ///< why a transfer ended half way: the two ends disagree from then on
  std::atomic<uint64_t> reported = 0;  ///< failures already told
  std::map<const Device*, std::unique_ptr<Queue>> queues;
  Queue* queue = nullptr;  ///< the one that worked last
  std::vector<Device*> pinned_for;

  ~Channel() {
    for (auto& [device, each] : queues) {
      pw_status status;
      while (!each->idle(status)) sched_yield();
    }
    for (Device* device : pinned_for) device->unpin(header);
    if (header != nullptr) munmap(header, kChannelBytes);
    if (descriptor >= 0) close(descriptor);
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
    : surroundings_(surroundings),
      chunk_bytes_(kFirstChunkBytes),
      lines_(std::make_unique<Line[]>(static_cast<size_t>(surroundings.team.size()))),
      service_(surroundings) {}

Staged::~Staged() {
  if (!surroundings_.control.mine()) return;
  for (int rank = 0; rank < surroundings_.team.size(); ++rank)
    if (const auto& channel = lines_[static_cast<size_t>(rank)].channel)
      channel->header->left.store(1, std::memory_order_release);
}

Offer Staged::probe(const Pair& pair) const {
  if (!pair.same_host) return {false, "the peer is on another host"};
  return {true, {}};
}

void Staged::set_chunk_bytes(uint64_t bytes) {
  chunk_bytes_.store(std::clamp<uint64_t>(bytes / 4096 * 4096, 4096, kLargestChunk));
}

// Every wait for the target ends when it dies, when it closes its context, and when this one is closed.
template <typename Done>
pw_status Staged::wait(const Channel& channel, uint64_t deadline_ns, const char* what, Done&& done) const {
  const Control& own = surroundings_.control.control();
  const auto closed = [&] {
    return channel.target->closed.load(std::memory_order_relaxed) != 0 ||
           own.closed.load(std::memory_order_relaxed) != 0;
  };
  const pw_status status =
      wait_until(surroundings_.team, channel.rank, deadline_ns, what, [&] { return done() || closed(); });
  if (status != PW_OK || done()) return status;
  if (own.closed.load(std::memory_order_relaxed) != 0)
    return fail(PW_CLOSED, format("peerway: this context was closed while waiting for {}", what));
  return fail(PW_CLOSED, format("peerway: rank {} closed its context while this rank waited for {}; let it "
                                "wait for all ranks (a barrier) before it closes",
                                channel.rank, what));
}

Staged::Channel& Staged::channel_to(int rank) {
  Line& line = lines_[static_cast<size_t>(rank)];
  if (Channel* ready = line.ready.load(std::memory_order_acquire)) return *ready;
  std::lock_guard lock(line.making);
  if (line.channel == nullptr) {
    auto channel = make_channel(rank);
    announce(*channel);
    line.channel = std::move(channel);
    line.ready.store(line.channel.get(), std::memory_order_release);
  }
  return *line.channel;
}

std::unique_ptr<Staged::Channel> Staged::make_channel(int rank) {
  auto channel = std::make_unique<Channel>();
  channel->rank = rank;
  channel->target = surroundings_.importer.control(rank);
  channel->descriptor = make_memfd("peerway-staging", kChannelBytes);
  void* address = mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, channel->descriptor, 0);
  if (address == MAP_FAILED)
    throw Error(PW_NO_MEMORY, "peerway: mapping a staging channel" + errno_text(errno));
  channel->header = static_cast<ChannelHeader*>(address);
  return channel;
}

// Tells the target of the channel and waits until it serves it. Throws Error; the next transfer tries again.
void Staged::announce(Channel& channel) {
  const int own_rank = surroundings_.team.rank();
  Mailbox& mailbox = channel.target->mailbox[static_cast<uint32_t>(own_rank) % kMailboxes];
  mailbox.rank.store(own_rank, std::memory_order_relaxed);
  mailbox.identity.store(memfd_identity(channel.descriptor), std::memory_order_relaxed);
  mailbox.refused.store(PW_OK, std::memory_order_relaxed);
  mailbox.descriptor.store(channel.descriptor + 1, std::memory_order_release);
  ring(*channel.target);
  const auto attached = [&] { return channel.header->attached.load(std::memory_order_acquire) != 0; };
  const pw_status status = wait(channel, deadline_after(config_number("timeout")), "a staging channel", [&] {
    return attached() || mailbox.refused.load(std::memory_order_acquire) != PW_OK;
  });
  if (status != PW_OK) throw Error(status, last_error_message());
  if (!attached())
    throw Error(
        static_cast<pw_status>(mailbox.refused.load()),
        format("peerway: rank {} cannot serve a staging channel; its log (PEERWAY_LOG) says why, most "
               "often that it has no descriptor left (ulimit -n)",
               channel.rank));
}

pw_status Staged::failure_of(const Channel& channel) const {
  const auto status = static_cast<pw_status>(channel.header->failure.load());
  return fail(status,
              format("peerway: rank {} could not serve a staged transfer: {}", channel.rank,
                     status == PW_STALE_KEY ? "the region or signal was closed" : pw_status_name(status)));
}

pw_status Staged::post(Channel& channel, const Transfer& transfer, const Raise* raise) {
  ChannelHeader& header = *channel.header;
  const pw_status room = wait(channel, PW_FOREVER, "room in the staging queue", [&] {
    return channel.requested - header.completed.load(std::memory_order_acquire) < kRequests;
  });
  if (room != PW_OK) return room;
  if (const uint64_t wanted = chunk_bytes_.load(std::memory_order_relaxed); channel.chunk_bytes != wanted) {
    const pw_status drained = wait(channel, PW_FOREVER, "the staging ring to drain", [&] {
      return header.drained.load(std::memory_order_acquire) == channel.chunks;
    });
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
    request.signal_slot = raise->signal->key.slot;
    request.signal_generation = raise->signal->key.generation;
  }
  header.requested.store(++channel.requested, std::memory_order_release);
  ring(*channel.target);
  return PW_OK;
}

pw_status Staged::move_chunks(Channel& channel, const Transfer& transfer) {
  ChannelHeader& header = *channel.header;
  Queue& queue = channel.queue_for(transfer.local->device());
  // The counters only grow if one queue at a time writes them.
  pw_status last = PW_OK;
  if (channel.queue != nullptr && channel.queue != &queue)
    if (const pw_status status =
            wait(channel, PW_FOREVER, "copies of another device", [&] { return channel.queue->idle(last); });
        status != PW_OK || last != PW_OK)
      return status != PW_OK ? status : last;
  channel.queue = &queue;
  const bool fill = transfer.op == Op::put;
  std::byte* local = transfer.local->address() + transfer.local_offset;
  const uint64_t chunk_bytes = channel.chunk_bytes, slots = kRingBytes / chunk_bytes;
  ChunkCursor cursor(transfer.layout, chunk_bytes);
  for (Chunk chunk; cursor.next(chunk);) {
    const pw_status ready = wait(channel, PW_FOREVER, "a staging chunk", [&] {
      return fill ? channel.chunks - header.drained.load(std::memory_order_acquire) < slots
                  : header.filled.load(std::memory_order_acquire) > channel.chunks;
    });
    if (ready != PW_OK) return ready;
    const Copy copy = chunk_copy(chunk, chunk_at(&header, channel.chunks, chunk_bytes), local, fill, !fill);
    if (const pw_status status = queue.copy(copy, Method::engine); status != PW_OK) return status;
    ++channel.chunks;
    auto& counter = fill ? header.filled : header.drained;
    if (const pw_status status = queue.write_aside(reinterpret_cast<uint64_t*>(&counter), channel.chunks);
        status != PW_OK)
      return status;
  }
  return fill ? PW_OK : finish_get(channel, queue);
}

// The chunks of a get are drained by this rank's queue, which nobody else sees: wait for it here.
pw_status Staged::finish_get(Channel& channel, Queue& queue) {
  pw_status status = PW_OK;
  const pw_status waited = wait(channel, PW_FOREVER, "a staged get", [&] { return queue.idle(status); });
  return waited != PW_OK ? waited : status;
}

pw_status Staged::start(const Transfer& transfer, const Raise* raise) {
  Channel& channel = channel_to(transfer.remote->rank());
  // The signal before the channel, as everywhere: begin_raise may flush another path, which another thread
  // may hold while it waits for the signal.
  std::unique_lock<SpinLock> raising;
  if (raise != nullptr)
    if (const pw_status status = begin_raise(*raise, this, raising); status != PW_OK) return status;
  std::lock_guard lock(channel.mutex);
  if (channel.broken != PW_OK)
    return fail(channel.broken,
                format("peerway: an earlier staged transfer with rank {} ended half way ({}); "
                       "no more can follow in this context",
                       channel.rank, pw_status_name(channel.broken)));
  if (const pw_status status = post(channel, transfer, raise); status != PW_OK) return status;
  if (raise != nullptr) raising.unlock();
  channel.broken = move_chunks(channel, transfer);
  return channel.broken;
}

// Without the channel's lock, so that a timeout holds while another thread is in the middle of a transfer.
pw_status Staged::flush(int rank, uint64_t deadline_ns) {
  Channel* channel = lines_[static_cast<size_t>(rank)].ready.load(std::memory_order_acquire);
  if (channel == nullptr) return PW_OK;
  ChannelHeader& header = *channel->header;
  const uint64_t requested = header.requested.load(std::memory_order_acquire);
  const pw_status status = wait(*channel, deadline_ns, "staged transfers to complete", [&] {
    return header.completed.load(std::memory_order_acquire) >= requested;
  });
  if (status != PW_OK) return status;
  const uint64_t failed = header.failed.load(std::memory_order_acquire);
  if (channel->reported.exchange(failed, std::memory_order_relaxed) == failed) return PW_OK;
  return failure_of(*channel);
}

}  // namespace pw
