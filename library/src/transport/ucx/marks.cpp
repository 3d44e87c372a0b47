// Tells when started operations are complete at both ends: marks, the flushes by which they are reached, and
// failures.
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "transport/ucx/peer.h"

namespace pw::ucx {

using namespace ucp_abi;

Mark UcxEngine::mark(int rank) {
  const Lock lock(mutex_);
  UcxPeer* peer = peers_[static_cast<size_t>(rank)].get();
  if (peer == nullptr || (peer->flushes.all_complete() && !peer->backlog.failed())) return 0;
  if (!peer->flushes.wanting()) awaiting_flush_.push_back(peer);
  const Mark mark = peer->flushes.want();
  advance_flushes();
  if (!awaiting_flush_.empty()) advance();  // it may be complete at once, and answers to the peer may start
  progress_.wake_if_asleep();
  return mark;
}

// The status is not needed: the error handler reports a broken connection, and a failed transfer has its own
// status.
void UcxEngine::on_flushed(void* request, ucs_status_t /*status*/, void* argument) {
  auto& peer = *static_cast<UcxPeer*>(argument);
  peer.flush.over = true;
  peer.engine.library_.ucp_request_free(request);
}

void UcxEngine::advance_flush(UcxPeer& peer) {
  auto& flush = peer.flush;
  if (peer.flushes.under_way()) {
    if (!(peer.by_messages ? peer.answered_up_to(flush.puts, flush.gets) : flush.over)) return;
    peer.flushes.end();
  }
  if (!peer.flushes.due() || peer.endpoint == nullptr) return;
  if (peer.waiting.load(std::memory_order_relaxed) > 0) return;  // words must be sent first
  peer.flushes.begin();
  if (peer.by_messages) {
    flush.puts = peer.puts.sent;
    flush.gets = peer.gets.sent;
    if (!peer.answered_up_to(flush.puts, flush.gets)) return;
  } else {
    flush.over = false;
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.send = on_flushed;
    params.user_data = &peer;
    const ucs_status_ptr_t answer = library_.ucp_ep_flush_nbx(peer.endpoint, &params);
    if (is_request(answer)) return;
    if (status_of(answer) != UCS_OK) peer.flushed = status_of(answer);
  }
  peer.flushes.end();
}

void UcxEngine::advance_flushes() {
  std::erase_if(awaiting_flush_, [this](UcxPeer* peer) {
    advance_flush(*peer);
    return !peer->flushes.wanting() || peer->failed();
  });
}

bool UcxEngine::reached(int rank, Mark mark) {
  {
    const Lock lock(mutex_);
    if (peers_[static_cast<size_t>(rank)]->flushes.reached(mark)) return true;
  }
  return over(rank);
}

pw_status UcxEngine::outcome(int rank, Mark mark) {
  {
    const Lock lock(mutex_);
    UcxPeer& peer = *peers_[static_cast<size_t>(rank)];
    if (peer.flushes.reached(mark)) {
      const pw_status late = peer.backlog.outcome();
      const pw_status failed = failure_since_flush(peer, std::exchange(peer.flushed, UCS_OK));
      return failed != PW_OK ? failed : late;
    }
  }
  return why_over(rank);
}

bool UcxEngine::over(int rank) {
  return failed(rank) || team_.lost(rank) || closed_.load(std::memory_order_relaxed) != 0;
}

pw_status UcxEngine::why_over(int rank) {
  if (team_.lost(rank)) return pw::fail(PW_PEER_LOST, team_.describe_loss(rank));
  if (failed(rank)) return failure(rank);
  return pw::fail(PW_CLOSED, format("this context was closed while transfers of UCX with rank {} were "
                                    "under way",
                                    rank));
}

// `flushed` is UCX's status of the flush itself. Each failure is reported once.
pw_status UcxEngine::failure_since_flush(UcxPeer& peer, ucs_status_t flushed) {
  const ucs_status_t failed = std::exchange(peer.unreported, static_cast<ucs_status_t>(UCS_OK));
  const pw_status refused = std::exchange(peer.refused, PW_OK);
  if (refused != PW_OK)
    return pw::fail(refused, format("rank {} refused an operation over UCX: the memory that it was for "
                                    "is closed; ask that rank for a new key",
                                    peer.rank));
  if (const pw_status broken = failure_of(peer); broken != PW_OK)
    return broken;  // the transfers failed for that reason
  if (failed == UCS_OK && flushed >= UCS_OK) return PW_OK;
  return pw::fail(PW_SYSTEM, format("a transfer of UCX {} with rank {} failed: {}", library_.version,
                                    peer.rank, text_of(library_, failed != UCS_OK ? failed : flushed)));
}

bool UcxEngine::settle(Lock& lock, Used& used) {
  const uint64_t deadline = deadline_after(2'000'000'000);
  while (used.operations_ > 0) {
    if (now_ns() > deadline) return false;
    advance();
    lock.unlock();
    sched_yield();
    lock.lock();
  }
  return true;
}

}  // namespace pw::ucx
