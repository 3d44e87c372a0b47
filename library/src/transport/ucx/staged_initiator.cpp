#include "transport/ucx/staged_initiator.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "base/timeout.h"
#include "transport/ucx/wait.h"

namespace pw::ucx {

StagedInitiator::StagedInitiator(const Surroundings& surroundings, const std::shared_ptr<UcxEngine>& engine,
                                 int target, std::atomic<uint64_t>& waiting)
    : TransferQueue(target, surroundings.progress, waiting),
      surroundings_(surroundings),
      secret_(surroundings.team.secret_for(kNotePurpose)),
      engine_(engine),
      ring_(engine) {}

// ---- the rings ----

void StagedInitiator::answer(RingNote note) {
  if (answered()) return;
  answer_ = std::move(note);
  answered_.store(true, std::memory_order_release);
  surroundings_.control.waiting()->wake();
}

// Asks for the target's ring, and connects the two rings once the answer is here.
pw_status StagedInitiator::open() {
  if (!ring_requested_) {
    RingNote question;
    question.rank = surroundings_.team.rank();
    question.address = ring_.address();
    question.key = ring_.memory().key();
    if (const pw_status status = engine_->send(rank_, write(question, secret_)); status != PW_OK)
      return status;
    ring_requested_ = true;
  }
  if (end_ == nullptr && answered() && answer_.status == PW_OK)
    end_ = std::make_unique<RingEnd>(
        *engine_, ring_, rank_,
        FarRing{std::make_unique<UcxRemoteMemory>(engine_, rank_, answer_.key), answer_.address});
  return PW_OK;
}

pw_status StagedInitiator::refused() {
  if (!answered() || answer_.status == PW_OK) return PW_OK;
  const pw_status status = answer_.status;
  ring_requested_ = false;
  answered_.store(false, std::memory_order_relaxed);
  return fail(status, format("rank {} cannot serve staged transfers; its log (PEERWAY_LOG) says why", rank_));
}

void StagedInitiator::prepare(const Transfer& transfer) {
  std::unique_lock lock(mutex_);
  if (ended()) return;  // start() reports why
  pw_status status = open();
  lock.unlock();
  if (status == PW_OK)
    status = engine_->wait_for(rank_, deadline_after(settings::timeout.nanoseconds()), "a ring for staging",
                               [&] { return answered(); });
  lock.lock();
  if (status == PW_OK) status = refused();
  if (status == PW_OK) status = open();
  if (status != PW_OK) throw Error(status, last_error_message());
  // If a queue is still working, the transfer itself calls use() later.
  if (empty()) static_cast<void>(ring_.use(transfer.local->device()));
}

pw_status StagedInitiator::outcome_there() {
  return tell_failure(ring_.header().failed.load(std::memory_order_acquire), reported_failures_, rank_);
}

// ---- transfers ----

pw_status StagedInitiator::go_on(QueuedTransfer& next, bool& done) {
  if (!next.posted)
    if (const pw_status status = post(next); status != PW_OK || !next.posted) return status;
  if (const pw_status status = end_->step(); status != PW_OK) return over() ? why_over() : status;
  done = end_->done();
  return PW_OK;
}

pw_status StagedInitiator::post(QueuedTransfer& next) {
  if (const pw_status status = open(); status != PW_OK || end_ == nullptr) return status;
  const Transfer& transfer = next.transfer;
  // Calls use() before it asks the target, because use() may throw.
  Queue* queue = next.given_up ? nullptr : ring_.use(transfer.local->device());
  if (queue == nullptr && !next.given_up) return PW_OK;
  RequestNote note{surroundings_.team.rank(), requested_, request_for(transfer)};
  if (next.given_up) note.request.layout = contiguous_layout(0);
  if (const pw_status status = engine_->send(rank_, write(note, secret_)); status != PW_OK) return status;
  ++requested_;
  next.posted = true;
  end_->begin(transfer.op == Op::put, note.request.layout,
              next.given_up ? nullptr : transfer.local->address() + transfer.local_offset, queue);
  return PW_OK;
}

}  // namespace pw::ucx
