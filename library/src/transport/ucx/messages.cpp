// Operations as messages: this end sends the request, the other end stores or reads, and answers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/ucx/peer.h"

namespace pw::ucx {

using namespace ucp_abi;

namespace {
constexpr uint64_t kMostBytes = uint64_t{64} << 10;  ///< largest message
constexpr unsigned kSendsSoundly = 22;  ///< the oldest 1.x with which the death of a peer did not end the
                                        ///< process in our tests
}  // namespace

// ---- requests ----

// Gives all messages of a piece to UCX at once, because starting a put must not wait for a peer that does not
// answer.
pw_status UcxEngine::move_by_messages(UcxPeer& peer, UcxMemory& local, UcxRemoteMemory& remote, Piece piece) {
  const bool put = piece.op == Op::put;
  auto* here = static_cast<std::byte*>(piece.local);
  for (uint64_t at = 0; at < piece.bytes;) {
    const uint64_t bytes = std::min(piece.bytes - at, kMostBytes);
    UcxOperation* operation = take_operation(peer, &local, &remote);
    operation->landing = here + at;
    const MessageHeader header{.kind = put ? MessageKind::put : MessageKind::get,
                               .memory = remote.number_,
                               .address = piece.remote + at,
                               .value = bytes};
    const pw_status status = send_numbered(peer, put ? peer.puts : peer.gets, operation, header,
                                           put ? here + at : nullptr, put ? bytes : 0);
    if (status != PW_OK) return status;
    at += bytes;
  }
  return PW_OK;
}

pw_status UcxEngine::send_numbered(UcxPeer& peer, NumberedMessages& queue, UcxOperation* operation,
                                   const MessageHeader& header, const void* data, uint64_t bytes) {
  operation->header = header;
  operation->header.number = ++queue.sent;
  operation->open = 2;
  operation->answered = false;
  queue.open.push_back(operation);
  const pw_status status = send_message(peer, operation, data, bytes);
  if (status == PW_OK) return PW_OK;
  queue.open.pop_back();
  --queue.sent;
  count_completion(operation, UCS_OK);  // releases the answer's part, since no answer will come
  return status;
}

// Never uses the rendezvous protocol, whose answers UCX sends itself.
pw_status UcxEngine::send_message(UcxPeer& peer, UcxOperation* operation, const void* data, uint64_t bytes) {
  operation->header.rank = team_.rank();
  ucp_request_param_t params = parameters(operation);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  if (copied_ != 0 && bytes != 0) {
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    params.datatype = copied_;
    operation->data = static_cast<const std::byte*>(data);
    operation->bytes = bytes;
    data = operation;
  }
  return started(library_.ucp_am_send_nbx(peer.endpoint, kOperations, &operation->header,
                                          sizeof(MessageHeader), data, bytes, &params),
                 operation);
}

// Makes UCX copy what it sends, if its version is old. UCX sends large messages of plain bytes without a
// copy. Over TCP its version 1.13 then ends the process if the peer dies in the middle of one (`comp->count >
// 0`). Bytes that it packs with functions of ours it always copies, which costs bandwidth.
ucs_status_t UcxEngine::let_ucx_copy() {
  static constexpr ucp_generic_dt_ops_t kOps{
      .start_pack = [](void*, const void* operation, size_t) { return const_cast<void*>(operation); },
      .start_unpack = [](void*, void* buffer, size_t) { return buffer; },
      .packed_size = [](void* operation) -> size_t {
        return static_cast<const UcxOperation*>(operation)->bytes;
      },
      .pack = [](void* argument, size_t offset, void* to, size_t most) -> size_t {
        const auto* operation = static_cast<const UcxOperation*>(argument);
        const size_t bytes = std::min<size_t>(most, operation->bytes - offset);
        if (operation->data != nullptr)
          std::memcpy(to, operation->data + offset, bytes);
        else
          std::memset(to, 0, bytes);  // the memory was closed meanwhile
        return bytes;
      },
      .unpack = [](void*, size_t, const void*, size_t) -> ucs_status_t { return UCS_ERR_UNSUPPORTED; },
      .finish = [](void*) {}};
  if (library_.minor >= kSendsSoundly) return UCS_OK;
  return library_.ucp_dt_create_generic(&kOps, nullptr, &copied_);
}

void UcxEngine::done_up_to(NumberedMessages& queue, uint64_t number) {
  while (!queue.open.empty() && queue.open.front()->header.number <= number) {
    UcxOperation* operation = queue.open.front();
    queue.open.pop_front();
    queue.done.store(operation->header.number, std::memory_order_release);
    count_completion(operation, UCS_OK);
  }
}

void UcxEngine::take_data(UcxPeer& peer, const MessageHeader& header, ByteView data) {
  NumberedMessages& queue = peer.gets;
  const uint64_t place = queue.open.empty() ? 0 : header.number - queue.open.front()->header.number;
  if (place >= queue.open.size()) return;
  UcxOperation* operation = queue.open[place];
  const auto status = static_cast<pw_status>(header.status);
  if (status == PW_OK && operation->landing != nullptr && data.size() == operation->header.value)
    std::memcpy(operation->landing, data.data(), data.size());
  else if (status != PW_OK && peer.refused == PW_OK)
    peer.refused = status;
  operation->answered = true;
  while (!queue.open.empty() && queue.open.front()->answered)
    done_up_to(queue, queue.open.front()->header.number);
}

// The connection is closed, so the answers that are still missing will not come.
void UcxEngine::give_up_answers(UcxPeer& peer) {
  for (NumberedMessages* queue : {&peer.puts, &peer.gets})
    for (; !queue->open.empty(); queue->open.pop_front())
      count_completion(queue->open.front(), UCS_ERR_CANCELED);
  peer.pending_gets.clear();
  peer.early_words.clear();
  peer.ack_due = false;
}

void UcxEngine::forget(const Used& used) {
  for (const auto& operation : operations_) {
    if (operation->local == &used)
      operation->local = nullptr, operation->landing = nullptr, operation->data = nullptr;
    if (operation->remote == &used) operation->remote = nullptr;
  }
}

// ---- serving ----

ucs_status_t UcxEngine::on_part(void* engine, const void* header, size_t header_length, void* data,
                                size_t length, const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<UcxEngine*>(engine);
  if (header_length != sizeof(MessageHeader) || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
    return UCS_OK;  // not a message of ours
  MessageHeader copy;
  std::memcpy(&copy, header, sizeof copy);
  if (copy.rank < 0 || copy.rank >= self.team_.size()) return UCS_OK;
  self.handle_message(copy, {static_cast<const std::byte*>(data), length});
  return UCS_OK;
}

// Runs within UCX's progress; advance() sends the answer afterwards.
void UcxEngine::handle_message(const MessageHeader& header, ByteView data) {
  UcxPeer& peer = peer_of(header.rank);
  if (peer.failed()) return;
  switch (header.kind) {
    case MessageKind::ack:
      if (header.status != PW_OK && peer.refused == PW_OK)
        peer.refused = static_cast<pw_status>(header.status);
      return done_up_to(peer.puts, header.number);
    case MessageKind::data:
      return take_data(peer, header, data);
    case MessageKind::get:
      peer.pending_gets.push_back(header);
      answers_due_ = true;
      return;
    case MessageKind::word:
      peer.early_words.emplace(header.number, header);
      break;
    case MessageKind::put:
      if (const pw_status status = store_message(header, data); status != PW_OK) peer.refusal = status;
      peer.order.done(header.number);
  }
  while (!peer.early_words.empty() && peer.early_words.begin()->first == peer.order.reached() + 1) {
    const MessageHeader word = peer.early_words.begin()->second;
    peer.early_words.erase(peer.early_words.begin());
    if (const pw_status status = store_message(word, {}); status != PW_OK) peer.refusal = status;
    peer.order.done(word.number);
  }
  peer.ack_due = answers_due_ = true;
}

UcxMemory* UcxEngine::find(const MessageHeader& header, uint64_t bytes, pw_status& why_not) {
  const auto entry = memories_.find(header.memory);
  why_not = entry == memories_.end() ? PW_STALE_KEY : PW_OK;
  if (why_not != PW_OK) return nullptr;
  UcxMemory& memory = *entry->second;
  const uint64_t offset = header.address - memory.address_;
  if (!memory.host_ || offset > memory.bytes_ || bytes > memory.bytes_ - offset) why_not = PW_OUT_OF_RANGE;
  return why_not == PW_OK ? &memory : nullptr;
}

pw_status UcxEngine::store_message(const MessageHeader& header, ByteView data) {
  const bool word = header.kind == MessageKind::word;
  pw_status status = PW_OK;
  if (find(header, word ? sizeof(uint64_t) : data.size(), status) == nullptr) return status;
  auto* to = reinterpret_cast<std::byte*>(header.address);
  if (!word)
    std::memcpy(to, data.data(), data.size());
  else if (header.address % sizeof(uint64_t) == 0)
    std::atomic_ref(*reinterpret_cast<uint64_t*>(to)).store(header.value, std::memory_order_release);
  else
    status = PW_OUT_OF_RANGE;
  return status;
}

void UcxEngine::answer(UcxPeer& peer) try {
  if (peer.pending_gets.empty() && !peer.ack_due) return;
  if (!address_of_) {  // the peer finished the exchange of addresses before this rank
    answers_due_ = true;
    return;
  }
  connect(peer.rank);
  while (!peer.pending_gets.empty() && !peer.failed()) {
    const MessageHeader get = peer.pending_gets.front();
    peer.pending_gets.pop_front();
    answer_get(peer, get);
  }
  if (!std::exchange(peer.ack_due, false) || peer.failed()) return;
  UcxOperation* operation = take_operation(peer, nullptr, nullptr);
  operation->header = {
      .kind = MessageKind::ack, .status = std::exchange(peer.refusal, PW_OK), .number = peer.order.reached()};
  if (send_message(peer, operation, nullptr, 0) != PW_OK) log(LogLevel::debug, last_error_message());
} catch (const Error& error) {
  give_up_answers(peer);
  log(LogLevel::warning, format("rank {} cannot be answered over UCX: {}", peer.rank, error.what()));
}

void UcxEngine::answer_get(UcxPeer& peer, const MessageHeader& get) {
  pw_status status = PW_OK;
  const uint64_t bytes = std::min(get.value, kMostBytes);
  UcxMemory* memory = find(get, bytes, status);
  UcxOperation* operation = take_operation(peer, memory, nullptr);
  operation->header = {.kind = MessageKind::data, .status = status, .number = get.number};
  const bool good = memory != nullptr;
  if (send_message(peer, operation, good ? reinterpret_cast<const void*>(get.address) : nullptr,
                   good ? bytes : 0) != PW_OK)
    log(LogLevel::debug, last_error_message());
}

}  // namespace pw::ucx
