// The operations of the engine: transfers, words and messages.
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "transport/ucx/peer.h"

namespace pw::ucx {

using namespace ucp_abi;

UcxEngine::UcxOperation* UcxEngine::take_operation(UcxPeer& peer, Used* local, Used* remote) {
  if (free_operations_.empty()) {
    operations_.push_back(std::make_unique<UcxOperation>());
    free_operations_.push_back(operations_.back().get());
  }
  UcxOperation* operation = free_operations_.back();
  free_operations_.pop_back();
  operation->peer = &peer;
  operation->local = local;
  operation->remote = remote;
  operation->open = 1;
  peer.under_way.fetch_add(1, std::memory_order_relaxed);
  for (Used* used : {local, remote})
    if (used != nullptr) ++used->operations_;
  return operation;
}

void UcxEngine::count_completion(UcxOperation* operation, ucs_status_t status) {
  UcxPeer& peer = *operation->peer;
  if (status != UCS_OK && peer.unreported == UCS_OK) peer.unreported = status;
  if (--operation->open > 0) return;
  for (Used* used : {operation->local, operation->remote})
    if (used != nullptr) --used->operations_;
  operation->kept.reset();
  free_operations_.push_back(operation);
  peer.under_way.fetch_sub(1, std::memory_order_release);
}

void UcxEngine::on_completion(void* request, ucs_status_t status, void* argument) {
  auto* operation = static_cast<UcxOperation*>(argument);
  UcxEngine& engine = operation->peer->engine;
  engine.count_completion(operation, status);
  engine.library_.ucp_request_free(request);
}

ucp_request_param_t UcxEngine::parameters(UcxOperation* operation) const {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = on_completion;
  params.user_data = operation;
  return params;
}

pw_status UcxEngine::started(ucs_status_ptr_t answer, UcxOperation* operation) {
  UcxPeer& peer = *operation->peer;
  if (is_request(answer)) return PW_OK;
  const ucs_status_t status = status_of(answer);
  count_completion(operation, UCS_OK);
  if (status == UCS_OK) return PW_OK;
  if (const pw_status broken = failure_of(peer); broken != PW_OK) return broken;
  if (means_lost(status)) {
    broken_ |= peer.fail(status);
    return failure_of(peer);
  }
  return pw::fail(PW_SYSTEM, format("UCX {} refused a transfer with rank {}: {}", library_.version, peer.rank,
                                    text_of(library_, status)));
}

/// Does what there is room for now, and leaves the rest to progress. Call it with the lock held.
template <typename GoOn>
pw_status UcxEngine::in_order(UcxPeer& peer, std::initializer_list<const void*> uses, GoOn&& go_on) {
  if (!peer.backlog.empty()) advance();
  bool done = false;
  if (peer.backlog.empty()) {
    poll_errors(peer);
    if (const pw_status status = failure_of(peer); status != PW_OK) return status;
    if (const pw_status status = go_on(done); status != PW_OK) return status;
  }
  peer.flushes.accept();
  if (done) {
    peer.flushes.issue();
    return failure_of(peer);
  }
  if (peer.backlog.empty()) backlogged_.push_back(&peer);
  peer.backlog.add(std::forward<GoOn>(go_on), uses);
  progress_.wake_if_asleep();
  return PW_OK;
}

void UcxEngine::resume_all() {
  std::erase_if(backlogged_, [](UcxPeer* peer) {
    if (peer->endpoint != nullptr && peer->under_way.load() <= peer->most_under_way() / 2)
      peer->flushes.issue(peer->backlog.resume());
    return peer->backlog.empty();
  });
}

// Called when memory goes away: operations that UCX was not given yet fail.
void UcxEngine::drop(const Used& used) {
  for (UcxPeer* peer : backlogged_) peer->backlog.drop(&used);
}

pw_status UcxEngine::move(int rank, UcxMemory& local, UcxRemoteMemory& remote, bool host,
                          std::function<bool(Piece&)> next) {
  const Lock lock(mutex_);
  UcxPeer& peer = connect(rank);
  return in_order(peer, {&local, &remote},
                  [this, &peer, &local, &remote, host, next = std::move(next)](bool& done) {
                    pw_status status = PW_OK;
                    for (Piece piece; status == PW_OK && !done && peer.has_room();)
                      if (next(piece))
                        status = start_piece(peer, local, remote, host, piece);
                      else
                        done = true;
                    return status;
                  });
}

pw_status UcxEngine::start_piece(UcxPeer& peer, UcxMemory& local, UcxRemoteMemory& remote, bool host,
                                 const Piece& piece) {
  peer.unordered = true;
  poll_errors(peer);
  if (const pw_status status = failure_of(peer); status != PW_OK) return status;
  if (peer.by_messages) return move_by_messages(peer, local, remote, piece);
  UcxOperation* operation = take_operation(peer, &local, &remote);
  ucp_request_param_t params = parameters(operation);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  params.memh = local.handle_;
  if (host) {
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
  }
  return started(piece.op == Op::put ? library_.ucp_put_nbx(peer.endpoint, piece.local, piece.bytes,
                                                            piece.remote, remote.handle_, &params)
                                     : library_.ucp_get_nbx(peer.endpoint, piece.local, piece.bytes,
                                                            piece.remote, remote.handle_, &params),
                 operation);
}

pw_status UcxEngine::put_word(int rank, UcxRemoteMemory& remote, uint64_t address, uint64_t value) {
  const Lock lock(mutex_);
  UcxPeer& peer = connect(rank);
  return in_order(peer, {&remote}, [this, &peer, &remote, address, value](bool& done) {
    done = true;
    return start_word(peer, remote, address, value);
  });
}

pw_status UcxEngine::start_word(UcxPeer& peer, UcxRemoteMemory& remote, uint64_t address, uint64_t value) {
  UcxOperation* operation = take_operation(peer, nullptr, &remote);
  if (peer.by_messages)
    return send_numbered(
        peer, peer.puts, operation,
        {.kind = MessageKind::word, .memory = remote.number_, .address = address, .value = value}, nullptr,
        0);
  operation->word = value;  // must stay at this address until the put is done
  operation->address = address;
  operation->ready = true;
  peer.words.push_back(operation);
  peer.waiting.fetch_add(1, std::memory_order_relaxed);
  if (std::exchange(peer.unordered, false)) {
    ucp_request_param_t params = parameters(operation);
    params.cb.send = on_word_ready;
    operation->ready = !is_request(library_.ucp_ep_flush_nbx(peer.endpoint, &params));
  }
  send_words(peer);
  return PW_OK;
}

void UcxEngine::on_word_ready(void* request, ucs_status_t, void* argument) {
  auto* operation = static_cast<UcxOperation*>(argument);
  UcxEngine& engine = operation->peer->engine;
  operation->ready = true;
  engine.words_ready_ = true;
  engine.library_.ucp_request_free(request);
}

void UcxEngine::send_words(UcxPeer& peer) {
  poll_errors(peer);
  while (!peer.words.empty() && peer.words.front()->ready) {
    UcxOperation* operation = peer.words.front();
    peer.words.pop_front();
    const auto* remote = static_cast<const UcxRemoteMemory*>(operation->remote);
    if (peer.endpoint == nullptr || peer.failed()) {
      count_completion(operation, UCS_ERR_CANCELED);
    } else {
      ucp_request_param_t params = parameters(operation);
      params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
      params.memory_type = UCS_MEMORY_TYPE_HOST;
      const ucs_status_ptr_t answer =
          library_.ucp_put_nbx(peer.endpoint, &operation->word, sizeof operation->word, operation->address,
                               remote->handle_, &params);
      if (!is_request(answer)) count_completion(operation, status_of(answer));
    }
    peer.waiting.fetch_sub(1, std::memory_order_release);
  }
}

std::shared_ptr<const uint64_t> UcxEngine::get_word(int rank, UcxRemoteMemory& remote, uint64_t address) {
  const auto landing = std::make_shared<uint64_t>(0);  // outlives a caller that stops waiting
  const Lock lock(mutex_);
  UcxPeer& peer = connect(rank);
  const pw_status status = in_order(peer, {&remote}, [this, &peer, &remote, address, landing](bool& done) {
    done = true;
    return start_get(peer, remote, address, landing);
  });
  if (status != PW_OK) throw Error(status, last_error_message());
  return landing;
}

pw_status UcxEngine::start_get(UcxPeer& peer, UcxRemoteMemory& remote, uint64_t address,
                               const std::shared_ptr<uint64_t>& landing) {
  UcxOperation* operation = take_operation(peer, nullptr, &remote);
  operation->kept = landing;
  operation->landing = landing.get();
  if (peer.by_messages)
    return send_numbered(
        peer, peer.gets, operation,
        {.kind = MessageKind::get, .memory = remote.number_, .address = address, .value = sizeof *landing},
        nullptr, 0);
  ucp_request_param_t params = parameters(operation);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  return started(
      library_.ucp_get_nbx(peer.endpoint, landing.get(), sizeof *landing, address, remote.handle_, &params),
      operation);
}

void UcxEngine::receive(std::function<void(ByteView)> receiver) {
  Lock lock(mutex_);
  receiver_ = std::move(receiver);
}

ucs_status_t UcxEngine::on_message(void* engine, const void*, size_t, void* data, size_t length,
                                   const ucp_am_recv_param_t* param) {
  const auto& receiver = static_cast<UcxEngine*>(engine)->receiver_;
  const bool here =
      (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;  // notes are short enough to arrive whole
  if (here && receiver) receiver({static_cast<const std::byte*>(data), length});
  return UCS_OK;
}

pw_status UcxEngine::send(int rank, Bytes message) {
  const auto kept = std::make_shared<Bytes>(std::move(message));
  Lock lock(mutex_);
  UcxPeer& peer = connect(rank);
  if (const pw_status status = failure_of(peer); status != PW_OK) return status;
  UcxOperation* operation = take_operation(peer, nullptr, nullptr);
  operation->kept = kept;
  ucp_request_param_t params = parameters(operation);
  return started(library_.ucp_am_send_nbx(peer.endpoint, 0, nullptr, 0, kept->data(), kept->size(), &params),
                 operation);
}

}  // namespace pw::ucx
