#include "transport/staged/initiator.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "base/timeout.h"
#include "device/host/host.h"
#include "transport/staged/service.h"

namespace pw {
namespace {

constexpr uint64_t kLeastPinned = uint64_t{2} << 20;

bool by_gpu_of(const Transfer& transfer) {
  return transfer.local->device().id().kind != PW_HOST || transfer.remote->key.device.kind != PW_HOST;
}

// A GPU's part of the ring is pinned, and so uses memory whether or not chunks pass; it is just large enough
// to keep both ends busy. A ring that only CPUs use takes only the memory that they touch.
RingDivision division_for(const Transfer& transfer, uint64_t chunk_bytes) {
  return {chunk_bytes,
          by_gpu_of(transfer) ? std::clamp(4 * chunk_bytes, kLeastPinned, kRingBytes) : kRingBytes};
}

// Each rank of a host has a mailbox of its own at the target, by its number among the ranks of the host. Its
// number in the team would not do: two ranks of one host may have the same number modulo kMailboxes.
Mailbox& mailbox_of(Control& target, const Importer& importer) {
  const int index = importer.local_rank();
  if (index >= static_cast<int>(kMailboxes))
    throw Error(PW_UNSUPPORTED,
                format("{} ranks of this host come before this one; at most {} ranks of a host use the path "
                       "staged: allow another one, or start fewer ranks",
                       index, kMailboxes));
  return target.mailbox[index];
}

void* map_ring(const Descriptor& memfd) {
  void* address = mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (address == MAP_FAILED) throw Error(PW_NO_MEMORY, "mapping a staging channel" + errno_text(errno));
  return address;
}

}  // namespace

StagingInitiator::StagingInitiator(const Surroundings& surroundings, int target,
                                   std::atomic<uint64_t>& waiting, const std::atomic<uint64_t>& chunk_bytes)
    : TransferQueue(target, surroundings.progress, waiting),
      surroundings_(surroundings),
      target_(surroundings.importer.control(target)),
      memfd_(make_memfd("peerway-staging", kChannelBytes)),
      mailbox_(mailbox_of(*target_, surroundings.importer)),
      wakeup_pipe_(surroundings.importer.process(target),
                   target_->wakeup_pipe.load(std::memory_order_acquire), target_->wakeup_pipe_identity),
      chunk_bytes_(chunk_bytes),
      end_(map_ring(memfd_)) {}

StagingInitiator::~StagingInitiator() {
  if (surroundings_.control.mine()) end_.header().released.store(1, std::memory_order_release);
}

// ---- the channel ----

// Asks the target to serve the channel, by its mailbox.
void StagingInitiator::announce() {
  if (announced_) return;
  mailbox_.rank.store(surroundings_.team.rank(), std::memory_order_relaxed);
  mailbox_.identity.store(memfd_identity(memfd_.get()), std::memory_order_relaxed);
  mailbox_.refused.store(PW_OK, std::memory_order_relaxed);
  mailbox_.descriptor.store(memfd_.get() + 1, std::memory_order_release);
  announce_work(*target_, wakeup_pipe_);
  announced_ = true;
}

pw_status StagingInitiator::refused() {
  if (attached()) return PW_OK;
  const auto status = static_cast<pw_status>(mailbox_.refused.load(std::memory_order_acquire));
  if (status == PW_OK) return PW_OK;
  announced_ = false;
  return fail(status, format("rank {} cannot serve a staging channel; its log (PEERWAY_LOG) says why, "
                             "most often that it has no descriptor left (ulimit -n)",
                             rank_));
}

void StagingInitiator::prepare(const Transfer& transfer) {
  std::unique_lock lock(mutex_);
  if (ended()) return;  // start() reports why
  announce();
  lock.unlock();
  const pw_status status = surroundings_.progress.wait(
      {surroundings_.team, rank_, deadline_after(settings::timeout.nanoseconds()), "a staging channel"},
      nullptr,
      [&] { return attached() || over() || mailbox_.refused.load(std::memory_order_acquire) != PW_OK; },
      Wakes::always);
  if (status != PW_OK) throw Error(status, last_error_message());
  lock.lock();
  if (const pw_status no = refused(); no != PW_OK) throw Error(no, last_error_message());
  // If a queue is still working, the transfer itself calls use() later.
  if (attached() && empty() && divide_ring(transfer))
    static_cast<void>(end_.use(transfer.local->device(), division_));
}

bool StagingInitiator::over() const {
  return target_->closed.load(std::memory_order_relaxed) != 0 ||
         surroundings_.control.control().closed.load(std::memory_order_relaxed) != 0 ||
         surroundings_.team.lost(rank_);
}

pw_status StagingInitiator::why_over() {
  if (surroundings_.team.lost(rank_)) return fail(PW_PEER_LOST, surroundings_.team.describe_loss(rank_));
  if (surroundings_.control.control().closed.load(std::memory_order_relaxed) != 0)
    return fail(PW_CLOSED, "this context was closed while waiting for staged transfers to complete");
  return fail(PW_CLOSED,
              format("rank {} closed its context while this rank had staged transfers with it; let it "
                     "wait for all ranks (a barrier) before it closes",
                     rank_));
}

pw_status StagingInitiator::outcome_there() {
  return tell_failure(end_.header().failed.load(std::memory_order_acquire), reported_failures_, rank_);
}

// ---- transfers ----

pw_status StagingInitiator::go_on(QueuedTransfer& next, bool& done) {
  if (!next.posted && !post(next)) return PW_OK;
  while (end_.has_chunk()) {
    if (!end_.ready()) return PW_OK;
    if (const pw_status status = end_.pass(next.transfer.remote->rank()); status != PW_OK) return status;
  }
  // The chunks of a get are drained by this rank's own queue, so nobody else can say when that is done.
  pw_status status = PW_OK;
  done = next.transfer.op == Op::put || next.given_up || end_.queue().idle(status);
  return status;
}

bool StagingInitiator::post(QueuedTransfer& next) {
  const Transfer& transfer = next.transfer;
  announce();
  if (by_gpu_of(transfer)) by_gpu_.store(true, std::memory_order_relaxed);
  const uint64_t under_way = posted_ - end_.header().completed.load(std::memory_order_acquire);
  if (!attached() || under_way == kRequests) return false;
  if (!next.given_up) {
    // Calls use() before it asks the target, because use() may throw.
    if (!divide_ring(transfer) || !end_.use(transfer.local->device(), division_)) return false;
  }
  write(end_.header().request[posted_ % kRequests], next);
  end_.header().requested.store(++posted_, std::memory_order_release);
  announce_work(*target_, wakeup_pipe_);
  next.posted = true;
  if (!next.given_up)
    end_.begin(transfer.op == Op::put, transfer.layout, transfer.local->address() + transfer.local_offset);
  return true;
}

// Divides the ring as the transfer needs it, once no slot of the old division is in use.
bool StagingInitiator::divide_ring(const Transfer& transfer) {
  const RingDivision wanted = division_for(transfer, chunk_bytes_.load(std::memory_order_relaxed));
  if (division_ == wanted) return true;
  if (end_.header().drained.load(std::memory_order_acquire) != end_.passed()) return false;
  division_ = wanted;
  return true;
}

void StagingInitiator::write(PostedRequest& posted, const QueuedTransfer& next) const {
  posted.request = request_for(next.transfer);
  if (next.given_up) posted.request.layout = contiguous_layout(0);
  posted.division = division_;
  posted.notify = next.signal != nullptr;
  if (next.signal == nullptr) return;
  posted.word = static_cast<uint32_t>(next.signal->word() - target_->signal);
  posted.notified = next.total;
  posted.signal_slot = next.signal->key.slot;
  posted.signal_generation = next.signal->key.generation;
}

bool StagingInitiator::leave_memory() {
  if (!end_.idle()) return false;
  end_.leave_memory();
  end_.header().abandoned.store(posted_, std::memory_order_release);
  return true;
}

}  // namespace pw
