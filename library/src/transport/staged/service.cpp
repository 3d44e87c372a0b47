#include "transport/staged/service.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "device/host/host.h"

namespace pw {

struct StagingService::Served {
  Served(int from, int process, std::shared_ptr<Control> control, void* mapped)
      : rank(from),
        end(mapped),
        initiator(std::move(control)),
        wakeup_pipe(process, initiator->wakeup_pipe.load(std::memory_order_acquire),
                    initiator->wakeup_pipe_identity) {}

  const int rank;
  ChannelEnd end;
  const std::shared_ptr<Control> initiator;  ///< its threads wait for this end
  const WakeupPipe wakeup_pipe;              ///< the initiator's
  uint64_t taken = 0;                        ///< number of requests taken
  uint64_t failures = 0;
  bool busy = false;  ///< whether a request is under way:
  PostedRequest posted{};
  Target target;
  /// Requests whose last chunks are still in a queue, with their numbers counted from 1. The queue still
  /// copies to their targets.
  std::deque<std::pair<uint64_t, Target>> ending;

  [[nodiscard]] bool pending() const {
    return busy || !ending.empty() || end.header().requested.load(std::memory_order_acquire) != taken;
  }

  /// Releases the targets to which no queue copies any more. If a queue failed, it completes no request.
  void let_go_of_ended() {
    while (!ending.empty() &&
           (end.header().completed.load(std::memory_order_acquire) >= ending.front().first || end.idle()))
      ending.pop_front();
  }
};

namespace {

// Keeps chunks inside the ring, whatever the initiator wrote.
RingDivision sound(const RingDivision& posted) {
  const uint64_t chunk_bytes = std::clamp<uint64_t>(posted.chunk_bytes, 1, kRingBytes);
  return {chunk_bytes, std::clamp(posted.ring_bytes, chunk_bytes, kRingBytes)};
}

}  // namespace

void announce_work(Control& control, const WakeupPipe& wakeup_pipe) {
  control.work_count.fetch_add(1, std::memory_order_seq_cst);
  if (control.watchers.load(std::memory_order_seq_cst) == 0) wakeup_pipe.wake();
}

StagingService::StagingService(Team& team, ControlSegment& control, Importer& importer, Registry& registry)
    : team_(team), control_(control), importer_(importer), registry_(registry) {}

StagingService::~StagingService() = default;

bool StagingService::has_new_work() const {
  return control_.control().work_count.load(std::memory_order_seq_cst) !=
         seen_.load(std::memory_order_relaxed);
}

// Peers announce new requests, but not the chunks of a request that is under way.
Armed StagingService::arm(bool) {
  if (has_new_work()) return {-1, 0};
  std::lock_guard lock(mutex_);
  std::erase_if(served_,
                [&](const auto& entry) { return team_.lost(entry.first) && entry.second->end.idle(); });
  if (!busy_.load(std::memory_order_relaxed)) return {};
  return {-1, control_.waiting()->nap_ns(Wakes::perhaps, now_ns() - moved_ns_)};
}

bool StagingService::poll() {
  if (!has_work()) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && serve_all();
}

// ---- with the lock held ----

bool StagingService::serve_all() {
  const uint32_t work_count = control_.control().work_count.load(std::memory_order_seq_cst);
  if (work_count != seen_.load(std::memory_order_relaxed)) attach();
  bool moved = false, busy = false;
  for (auto entry = served_.begin(); entry != served_.end();) {
    Served& served = *entry->second;
    const bool released =
        served.end.header().released.load(std::memory_order_acquire) != 0 && !served.pending();
    if (released || team_.lost(served.rank)) {
      const bool idle = served.end.idle();  // otherwise its destructor would wait
      busy |= !idle;
      entry = idle ? served_.erase(entry) : std::next(entry);
      continue;
    }
    moved |= step(served);
    busy |= served.pending();
    ++entry;
  }
  seen_.store(work_count, std::memory_order_relaxed);
  busy_.store(busy, std::memory_order_relaxed);
  if (moved) moved_ns_ = now_ns();
  return moved;
}

void StagingService::attach() {
  Control& control = control_.control();
  const int mailboxes = std::min<int>(importer_.local_size(), kMailboxes);
  for (int i = 0; i < mailboxes; ++i) {
    Mailbox& mailbox = control.mailbox[i];
    const int32_t announced = mailbox.descriptor.load(std::memory_order_acquire);
    if (announced == 0) continue;
    mailbox.descriptor.store(0, std::memory_order_relaxed);
    const int rank = mailbox.rank.load(std::memory_order_relaxed);
    const uint64_t identity = mailbox.identity.load(std::memory_order_relaxed);
    if (rank < 0 || rank >= team_.size()) continue;
    try {
      const int process = importer_.process(rank);
      auto initiator = importer_.control(rank);
      if (initiator == nullptr) continue;  // on another host
      auto served = std::make_unique<Served>(
          rank, process, std::move(initiator),
          map_memfd_of(process, announced - 1, identity, kChannelBytes, "a staging channel"));
      served->end.header().attached.store(1, std::memory_order_release);
      wake(served->initiator->sleepers);
      served_[rank] = std::move(served);
    } catch (const Error& error) {
      log(LogLevel::warning, format("cannot serve the staging channel of rank {}: {}", rank, error.what()));
      mailbox.refused.store(error.status(), std::memory_order_release);
    }
  }
}

bool StagingService::take_request(Served& served) {
  const ChannelHeader& header = served.end.header();
  if (header.requested.load(std::memory_order_acquire) == served.taken) return false;
  served.posted = header.request[served.taken % kRequests];
  const StagedRequest& request = served.posted.request;
  const RingDivision division = sound(served.posted.division);
  Target target(request, registry_);
  bool usable = false;
  try {
    usable = served.end.use(target.status() == PW_OK ? target.device() : host_device(), division);
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
    target.set_status(error.status());
    usable = served.end.use(host_device(), division);  // no queue is at work if use() threw
  }
  if (!usable) return false;
  served.busy = true;
  // The chunks of a failed request are passed all the same, so that the initiator does not wait.
  std::byte* first = target.status() == PW_OK ? target.address() : nullptr;
  served.target = std::move(target);
  served.end.begin(request.op == Op::get, request.layout, first);
  return true;
}

bool StagingService::step(Served& served) {
  served.let_go_of_ended();
  if (!served.busy && !take_request(served)) return false;
  ChannelEnd& end = served.end;
  if (served.target.wanted_back()) {
    if (!end.idle()) return false;  // so no more of it is begun
    end.leave_memory();
    served.target.let_go();
  }
  if (!end.has_chunk())
    finish_request(served);
  else if (!end.ready())
    return false;
  else if (const pw_status status = end.pass(served.rank); status != PW_OK)
    served.target.set_status(status);
  tell(served);
  return true;
}

// Wakes the initiator's threads, which may sleep until something has moved, and its progress thread.
void StagingService::tell(Served& served) {
  wake(served.initiator->sleepers);
  ChannelHeader& header = served.end.header();
  if (header.initiator_waits.load(std::memory_order_seq_cst) != 0) {
    header.initiator_waits.store(0, std::memory_order_relaxed);
    announce_work(*served.initiator, served.wakeup_pipe);
  }
}

void StagingService::notify(Served& served) {
  const PostedRequest& posted = served.posted;
  Control& control = control_.control();
  if (posted.word >= kSignalWords || posted.signal_slot >= kRegionSlots ||
      control.generation[posted.signal_slot].load(std::memory_order_acquire) != posted.signal_generation)
    return served.target.set_status(PW_STALE_KEY);  // the word may belong to another signal by now
  try {
    Device& device = served.target.device();
    if (device.id().kind != PW_HOST) importer_.pin_control(team_.rank(), device);
    served.target.set_status(
        served.end.queue().write(reinterpret_cast<uint64_t*>(&control.signal[posted.word]), posted.notified));
    control_.waiting()->wake();
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
    served.target.set_status(error.status());
  }
}

void StagingService::finish_request(Served& served) {
  ChannelHeader& header = served.end.header();
  if (header.abandoned.load(std::memory_order_acquire) == served.taken + 1)
    served.target.set_status(PW_STALE_KEY);
  if (served.target.status() == PW_OK && served.posted.notify) notify(served);
  if (served.target.status() != PW_OK)
    header.failed.store(failure_word(++served.failures, served.target.status()), std::memory_order_release);
  served.end.queue().write(reinterpret_cast<uint64_t*>(&header.completed), ++served.taken);
  served.busy = false;
  served.ending.emplace_back(served.taken, std::exchange(served.target, {}));
  served.let_go_of_ended();
}

}  // namespace pw
