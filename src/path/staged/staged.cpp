#include "path/staged/staged.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.h"
#include "base/config.h"
#include "base/descriptor.h"
#include "base/format.h"
#include "base/status.h"
#include "device/host/host.h"
#include "path/staged/service.h"

namespace pw {
namespace {
constexpr uint64_t kFirstChunkBytes = uint64_t{256} << 10;  // until a route table brings a measured size
constexpr uint64_t kLeastPinned = uint64_t{2} << 20;

bool by_gpu(const Transfer& transfer) {
  return transfer.local->device().id().kind != PW_HOST || transfer.remote->key.device.kind != PW_HOST;
}

// A GPU's part of the ring is pinned, and so is in memory whether used or not: no more than keeps both ends
// at work. Of a ring that only processors use, just what they touch is in memory.
Cut cut_for(const Transfer& transfer, uint64_t chunk_bytes) {
  return {chunk_bytes, by_gpu(transfer) ? std::clamp(4 * chunk_bytes, kLeastPinned, kRingBytes) : kRingBytes};
}
}  // namespace

/// The initiator's end of a channel.
struct Staged::Channel {
  Channel(int to, int process, std::shared_ptr<Control> control, Descriptor memfd, void* mapped)
      : rank(to),
        target(std::move(control)),
        bell(process, target->bell.load(std::memory_order_acquire), target->bell_identity),
        descriptor(std::move(memfd)),
        end(mapped) {}

  const int rank;
  const std::shared_ptr<Control> target;
  const Bell bell;  ///< the target's
  const Descriptor descriptor;
  std::mutex mutex;  ///< one transfer at a time
  ChannelEnd end;
  uint64_t requested = 0;
  Cut cut;                           ///< how the ring is cut
  pw_status broken = PW_OK;          ///< why a transfer ended half way
  std::atomic<uint64_t> told = 0;    ///< failures of the target
  std::atomic<bool> by_gpu = false;  ///< memory of a GPU has passed it
};

Staged::Staged(Surroundings surroundings)
    : Path(Completes::later),
      surroundings_(surroundings),
      chunk_bytes_(kFirstChunkBytes),
      lines_(std::make_unique<Line[]>(static_cast<size_t>(surroundings.team.size()))) {}

Staged::~Staged() {
  if (!surroundings_.control.mine()) return;
  for (int rank = 0; rank < surroundings_.team.size(); ++rank)
    if (const auto& channel = lines_[static_cast<size_t>(rank)].channel)
      channel->end.header().left.store(1, std::memory_order_release);
}

Offer Staged::probe(const Pair& pair) const {
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  return Offer::yes();
}

void Staged::set_chunk_bytes(uint64_t bytes) {
  chunk_bytes_.store(std::clamp<uint64_t>(bytes / 4096 * 4096, 4096, kLargestChunk));
}

bool Staged::closed(const Channel& channel) const {
  return channel.target->closed.load(std::memory_order_relaxed) != 0 ||
         surroundings_.control.control().closed.load(std::memory_order_relaxed) != 0;
}

pw_status Staged::fail_closed(const Channel& channel, const char* what) const {
  if (surroundings_.control.control().closed.load(std::memory_order_relaxed) != 0)
    return fail(PW_CLOSED, format("peerway: this context was closed while waiting for {}", what));
  return fail(PW_CLOSED, format("peerway: rank {} closed its context while this rank waited for {}; let it "
                                "wait for all ranks (a barrier) before it closes",
                                channel.rank, what));
}

// Every wait for the target ends when it dies, when it closes its context, and when this one is closed. The
// target may be waiting for this rank's service meanwhile.
template <typename Done>
pw_status Staged::wait(const Channel& channel, uint64_t deadline_ns, const char* what, Done&& done) const {
  // The target's service wakes this rank; a GPU at either end, which writes the counters itself, does not.
  const Wakes wakes = channel.by_gpu.load(std::memory_order_relaxed) ? Wakes::perhaps : Wakes::always;
  const pw_status status = surroundings_.progress.wait(
      {surroundings_.team, channel.rank, deadline_ns, what}, nullptr,
      [&] { return done() || closed(channel); }, wakes);
  return status != PW_OK || done() ? status : fail_closed(channel, what);
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
  auto target = surroundings_.importer.control(rank);
  Descriptor memfd = make_memfd("peerway-staging", kChannelBytes);
  void* address = mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (address == MAP_FAILED)
    throw Error(PW_NO_MEMORY, "peerway: mapping a staging channel" + errno_text(errno));
  return std::make_unique<Channel>(rank, surroundings_.importer.card(rank).process, std::move(target),
                                   std::move(memfd), address);
}

// Tells the target of the channel and waits until it serves it. Throws Error; the next transfer tries again.
void Staged::announce(Channel& channel) {
  const int own_rank = surroundings_.team.rank();
  Mailbox& mailbox = channel.target->mailbox[static_cast<uint32_t>(own_rank) % kMailboxes];
  mailbox.rank.store(own_rank, std::memory_order_relaxed);
  mailbox.identity.store(memfd_identity(channel.descriptor.get()), std::memory_order_relaxed);
  mailbox.refused.store(PW_OK, std::memory_order_relaxed);
  mailbox.descriptor.store(channel.descriptor.get() + 1, std::memory_order_release);
  ring(*channel.target, channel.bell);
  const auto attached = [&] { return channel.end.header().attached.load(std::memory_order_acquire) != 0; };
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

// Cuts the ring as is now wanted, once nothing of the old cut is in use.
pw_status Staged::cut_ring(Channel& channel, const Transfer& transfer) {
  const Cut wanted = cut_for(transfer, chunk_bytes_.load(std::memory_order_relaxed));
  if (channel.cut == wanted) return PW_OK;
  const ChannelHeader& header = channel.end.header();
  const pw_status status = wait(channel, PW_FOREVER, "the staging ring to drain", [&] {
    return header.drained.load(std::memory_order_acquire) == channel.end.passed();
  });
  if (status == PW_OK) channel.cut = wanted;
  return status;
}

pw_status Staged::post(Channel& channel, const Transfer& transfer, RaiseTurn* turn) {
  ChannelHeader& header = channel.end.header();
  const pw_status room = wait(channel, PW_FOREVER, "room in the staging queue", [&] {
    return channel.requested - header.completed.load(std::memory_order_acquire) < kRequests;
  });
  if (room != PW_OK) return room;
  PostedRequest& posted = header.request[channel.requested % kRequests];
  posted.request = request_for(transfer);
  posted.cut = channel.cut;
  posted.raise = turn != nullptr;
  if (turn != nullptr) {
    const Remote& signal = turn->signal();
    posted.word = static_cast<uint32_t>(signal.word() - channel.target->signal);
    posted.raised = turn->total();
    posted.signal_slot = signal.key.slot;
    posted.signal_generation = signal.key.generation;
  }
  header.requested.store(++channel.requested, std::memory_order_release);
  ring(*channel.target, channel.bell);
  return PW_OK;
}

pw_status Staged::move_chunks(Channel& channel, const Transfer& transfer) {
  ChannelEnd& end = channel.end;
  const bool put = transfer.op == Op::put;
  end.begin(put, transfer.layout, transfer.local->address() + transfer.local_offset);
  while (end.has_chunk()) {
    const pw_status ready = wait(channel, PW_FOREVER, "a staging chunk", [&] { return end.ready(); });
    if (ready != PW_OK) return ready;
    if (const pw_status status = end.pass(); status != PW_OK) return status;
  }
  if (put) return PW_OK;
  // The chunks of a get are drained by this rank's queue, which nobody else sees: wait for it here.
  pw_status status = PW_OK;
  const pw_status waited =
      wait(channel, PW_FOREVER, "a staged get", [&] { return end.queue().idle(status); });
  return waited != PW_OK ? waited : status;
}

void Staged::prepare(const Transfer& transfer) {
  Channel& channel = channel_to(transfer.remote->rank());
  std::lock_guard lock(channel.mutex);
  if (channel.broken != PW_OK || closed(channel)) return;  // start() tells
  if (cut_ring(channel, transfer) == PW_OK) channel.end.use(transfer.local->device(), channel.cut);
}

bool Staged::joins(const Transfer& transfer, Remote& signal) {
  channel_to(transfer.remote->rank());
  return signal.word() != nullptr;
}

pw_status Staged::start(const Transfer& transfer, RaiseTurn* turn) {
  Channel& channel = channel_to(transfer.remote->rank());
  std::lock_guard lock(channel.mutex);
  if (channel.broken != PW_OK) return refuse_after(channel.broken, channel.rank);
  if (closed(channel)) return fail_closed(channel, "a staged transfer");
  if (by_gpu(transfer)) channel.by_gpu.store(true, std::memory_order_relaxed);
  if (const pw_status status = cut_ring(channel, transfer); status != PW_OK) return status;
  // What this throws must come before the target is asked.
  channel.end.use(transfer.local->device(), channel.cut);
  if (const pw_status status = post(channel, transfer, turn); status != PW_OK) return status;
  if (turn != nullptr) turn->made();
  channel.broken = move_chunks(channel, transfer);
  return channel.broken;
}

// Without the channel's lock, which a thread in the middle of a transfer has.
Mark Staged::mark(int rank) {
  const Channel* channel = lines_[static_cast<size_t>(rank)].ready.load(std::memory_order_acquire);
  return channel == nullptr ? 0 : channel->end.header().requested.load(std::memory_order_acquire);
}

bool Staged::reached(int rank, Mark mark) {
  const Channel& channel = *lines_[static_cast<size_t>(rank)].ready.load(std::memory_order_acquire);
  return channel.end.header().completed.load(std::memory_order_acquire) >= mark || closed(channel) ||
         surroundings_.team.lost(rank);
}

pw_status Staged::outcome(int rank, Mark mark) {
  Channel& channel = *lines_[static_cast<size_t>(rank)].ready.load(std::memory_order_acquire);
  const ChannelHeader& header = channel.end.header();
  if (header.completed.load(std::memory_order_acquire) >= mark)
    return tell_failure(header.failed.load(std::memory_order_acquire), channel.told, rank);
  if (surroundings_.team.lost(rank))
    return fail(PW_PEER_LOST, "peerway: " + surroundings_.team.describe_loss(rank));
  return fail_closed(channel, "staged transfers to complete");
}

// The target's service wakes this rank; a GPU at either end, which writes the counters itself, does not.
Wakes Staged::wakes(int rank) {
  const Channel& channel = *lines_[static_cast<size_t>(rank)].ready.load(std::memory_order_acquire);
  return channel.by_gpu.load(std::memory_order_relaxed) ? Wakes::perhaps : Wakes::always;
}

}  // namespace pw
