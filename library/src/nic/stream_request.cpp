#include "nic/stream_request.h"

#include <algorithm>
#include <random>

#include "nic/connection.h"
#include "nic/control.h"
#include "nic/settle.h"

namespace pw::nic {

RequestStream::RequestStream(Endpoint& endpoint, std::shared_ptr<Connection> connection)
    : Stream(endpoint, std::move(connection)),
      box_(control_.box(connection_->facts().number)),
      peer_box_(ControlSpan::box_at(connection_->facts().endpoints, endpoint.info().number)),
      first_(std::random_device{}() | 1u << 31),
      outstanding_(std::make_shared<OutstandingRequests>()) {
  for (PutRequest& each : outstanding_->request) {
    each.owner = this;
    each.call = on_done<RequestStream, PutRequest, &RequestStream::put_done>;
  }
  outstanding_->heartbeat.owner = this;
  outstanding_->heartbeat.call =
      on_done<RequestStream, Outstanding<RequestStream>, &RequestStream::heartbeat_done>;
}

RequestStream::~RequestStream() {
  const auto idle = [&] {
    return !outstanding_->heartbeat.under_way &&
           std::ranges::none_of(outstanding_->request, &PutRequest::under_way);
  };
  outstanding_->heartbeat.owner = nullptr;
  for (PutRequest& each : outstanding_->request) each.owner = nullptr;
  if (failed_ == PW_NIC_OK) failed_ = PW_NIC_BROKEN;
  end_requests();
  end_flushes();
  if (!settle(ops_, nic_, idle)) keep(outstanding_);
}

// ---- requests ----

// Puts the marker. The peer polls the markers of all endpoints, and then the requests of those that it found.
pw_nic_status RequestStream::greet() {
  if (!announced_) {
    const uint64_t marker = uint64_t{first_} << 32 | 1;
    const pw_nic_status status =
        note(ops_.put(nic_, peer_control_, ControlSpan::place_at(endpoint_.info().number), &marker, nullptr,
                      sizeof marker, nullptr));
    if (status != PW_NIC_OK) return status;
    announced_ = true;
  }
  if (requested_ > 0) return PW_NIC_OK;
  NicMessage hello;
  const EndpointFacts& mine = endpoint_.facts();
  hello.add_name(mine.address);
  hello.add_name(mine.control);
  hello.add(mine.number);
  hello.add(mine.endpoints);
  hello.add(mine.guarantees);
  return send_request(hello, nullptr);
}

pw_nic_status RequestStream::send_request(const NicMessage& message, pw_nic_done* waiter) {
  PutRequest& next = request(requested_);
  const uint64_t slot = requested_ % kSlots;
  uint64_t* out = box_.out[slot];
  message.write(out, tag_of(first_, requested_));
  const uint64_t to = peer_box_ + offsetof(Box, request) + slot * sizeof box_.request[0];
  const pw_nic_status status =
      note(ops_.put(nic_, peer_control_, to, out, control_memory_, message.count * sizeof(uint64_t), &next));
  if (status != PW_NIC_OK) return status;
  next.waiter = waiter;
  next.answered = false;
  next.under_way = true;
  ++requested_;
  activate();
  return PW_NIC_OK;
}

pw_nic_status RequestStream::put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                 uint64_t bytes, pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (memory == nullptr && bytes > kBounceBytes) return PW_NIC_INVALID;
  if (const pw_nic_status status = greet(); status != PW_NIC_OK) return status;
  if (!has_room(1)) return PW_NIC_BUSY;
  uint64_t from = 0;
  if (memory != nullptr) {
    from = static_cast<uint64_t>(static_cast<const std::byte*>(data) -
                                 static_cast<const std::byte*>(memory->span().address));
  } else {
    std::byte* bounce = box_.bounce[requested_ % kSlots];
    std::memcpy(bounce, data, bytes);
    from = control_.offset_of(bounce);
  }
  NicMessage get;
  get.kind = RequestKind::get;
  get.add_name(remote.key());
  get.add_long(offset);
  get.add_long(bytes);
  get.add_name(memory != nullptr ? memory->key() : endpoint_.facts().control);
  get.add_long(from);
  return send_request(get, done);
}

pw_nic_status RequestStream::word(const Word& word) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (const pw_nic_status status = greet(); status != PW_NIC_OK) return status;
  return word_.remote != nullptr ? PW_NIC_BUSY : request_store(word);
}

pw_nic_status RequestStream::request_store(const Word& word) {
  if (!has_room(1)) return PW_NIC_BUSY;
  std::byte* bounce = box_.bounce[requested_ % kSlots];  // used for memory that only the NIC can access
  std::memcpy(bounce, &word.value, sizeof word.value);
  NicMessage store;
  store.kind = RequestKind::store;
  store.add_name(word.remote->key());
  store.add_long(word.offset);
  store.add_long(word.value);
  store.add_long(control_.offset_of(bounce));
  return send_request(store, nullptr);
}

pw_nic_status RequestStream::put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                      uint64_t bytes, const Word& word, pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (const pw_nic_status status = greet(); status != PW_NIC_OK) return status;
  if (!has_room(2) || word_.remote != nullptr) return PW_NIC_BUSY;
  const pw_nic_status status = put(remote, offset, data, memory, bytes, done);
  if (status != PW_NIC_OK) return status;
  if (request_store(word) == PW_NIC_BUSY) word_ = word;  // the NIC itself has no room
  return PW_NIC_OK;
}

pw_nic_status RequestStream::flush(pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (word_.remote != nullptr || flushed_ - flushes_ended_ == kFlushes) return PW_NIC_BUSY;
  flushes_[flushed_++ % kFlushes] = {done, requested_};
  activate();
  return PW_NIC_OK;
}

// ---- answers ----

void RequestStream::put_done(PutRequest&, pw_nic_status status) { note(status); }
void RequestStream::heartbeat_done(Outstanding<RequestStream>&, pw_nic_status status) { note(status); }

void RequestStream::look_for_answers() {
  for (uint64_t number = ended_; number < requested_; ++number) {
    PutRequest& each = request(number);
    if (each.answered) continue;
    const uint64_t answer = std::atomic_ref(box_.answer[number % kSlots]).load(std::memory_order_acquire);
    if (answer >> 32 != tag_of(first_, number)) continue;
    each.answered = true;
    each.answer = static_cast<pw_nic_status>(answer & 0xff);
    if (refused_ == PW_NIC_OK) refused_ = each.answer;
  }
}

// Ends requests in order, so that a slot is reused only when both ends are done with everything before it.
unsigned RequestStream::end_requests() {
  unsigned ended = 0;
  for (; ended_ < requested_; ++ended_, ++ended) {
    PutRequest& next = request(ended_);
    if (failed_ == PW_NIC_OK && (!next.answered || next.under_way)) break;
    call(std::exchange(next.waiter, nullptr), failed_ != PW_NIC_OK ? failed_ : next.answer);
  }
  return ended;
}

unsigned RequestStream::end_flushes() {
  unsigned ended = 0;
  for (; flushes_ended_ < flushed_; ++ended) {
    const Flush next = flushes_[flushes_ended_ % kFlushes];
    if (next.after > ended_) break;
    ++flushes_ended_;
    const pw_nic_status refused = std::exchange(refused_, PW_NIC_OK);
    call(next.done, failed_ != PW_NIC_OK ? failed_ : refused);
  }
  return ended;
}

// If an answer is late the peer may be dead. Then this get fails.
void RequestStream::send_heartbeat() {
  constexpr uint64_t kInterval = 10'000'000;  // ns
  if (outstanding_->heartbeat.under_way || coarse_now_ns() < next_heartbeat_ns_) return;
  outstanding_->heartbeat.under_way = start_get_of_marker(&outstanding_->heartbeat) == PW_NIC_OK;
  next_heartbeat_ns_ = coarse_now_ns() + kInterval;
}

unsigned RequestStream::advance(bool& unfinished) {
  if (word_.remote != nullptr && (failed_ != PW_NIC_OK || request_store(word_) != PW_NIC_BUSY)) word_ = {};
  look_for_answers();
  const unsigned happened = end_requests() + end_flushes();
  unfinished = ended_ < requested_ || flushes_ended_ < flushed_ || word_.remote != nullptr;
  if (ended_ < requested_) send_heartbeat();
  return happened;
}

void RequestStream::forget(const RemoteMemory& remote) {
  if (word_.remote == &remote) word_ = {};
}

}  // namespace pw::nic
