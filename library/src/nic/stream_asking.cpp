#include "nic/stream_asking.h"

#include <algorithm>
#include <random>

#include "nic/connection.h"
#include "nic/control.h"
#include "nic/settle.h"

namespace pw::nic {

AskingStream::AskingStream(Endpoint& endpoint, std::shared_ptr<Connection> connection)
    : Stream(endpoint, std::move(connection)),
      box_(control_.box(connection_->facts().number)),
      there_(ControlSpan::box_at(connection_->facts().endpoints, endpoint.info().number)),
      first_(std::random_device{}() | 1u << 31),
      debts_(std::make_shared<Debts>()) {
  for (PutRequest& each : debts_->request) {
    each.owner = this;
    each.call = on_done<AskingStream, PutRequest, &AskingStream::left>;
  }
  debts_->pulse.owner = this;
  debts_->pulse.call = on_done<AskingStream, Debt<AskingStream>, &AskingStream::beat>;
}

AskingStream::~AskingStream() {
  const auto idle = [&] {
    return !debts_->pulse.under_way && std::ranges::none_of(debts_->request, &PutRequest::under_way);
  };
  debts_->pulse.owner = nullptr;
  for (PutRequest& each : debts_->request) each.owner = nullptr;
  if (failed_ == PW_NIC_OK) failed_ = PW_NIC_BROKEN;
  end_requests();
  end_flushes();
  if (!settle(ops_, nic_, idle)) keep(debts_);
}

// ---- asking ----

// The peer looks at the marker of every endpoint, and then at the requests of those that it found.
pw_nic_status AskingStream::greet() {
  if (!announced_) {
    const uint64_t marker = uint64_t{first_} << 32 | 1;
    const pw_nic_status status =
        note(ops_.put(nic_, peer_control_, ControlSpan::place_at(endpoint_.info().number), &marker, nullptr,
                      sizeof marker, nullptr));
    if (status != PW_NIC_OK) return status;
    announced_ = true;
  }
  if (asked_ > 0) return PW_NIC_OK;
  NicMessage hello;
  const EndpointFacts& mine = endpoint_.facts();
  hello.add_name(mine.address);
  hello.add_name(mine.control);
  hello.add(mine.number);
  hello.add(mine.endpoints);
  hello.add(mine.guarantees);
  return ask(hello, nullptr);
}

pw_nic_status AskingStream::ask(const NicMessage& message, pw_nic_done* asker) {
  PutRequest& next = request(asked_);
  const uint64_t slot = asked_ % kSlots;
  uint64_t* out = box_.out[slot];
  message.write(out, tag_of(first_, asked_));
  const uint64_t to = there_ + offsetof(Box, request) + slot * sizeof box_.request[0];
  const pw_nic_status status =
      note(ops_.put(nic_, peer_control_, to, out, control_memory_, message.count * sizeof(uint64_t), &next));
  if (status != PW_NIC_OK) return status;
  next.asker = asker;
  next.answered = false;
  next.under_way = true;
  ++asked_;
  activate();
  return PW_NIC_OK;
}

pw_nic_status AskingStream::put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
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
    std::byte* bounce = box_.bounce[asked_ % kSlots];
    std::memcpy(bounce, data, bytes);
    from = control_.offset_of(bounce);
  }
  NicMessage take;
  take.kind = Ask::take;
  take.add_name(remote.key());
  take.add_long(offset);
  take.add_long(bytes);
  take.add_name(memory != nullptr ? memory->key() : endpoint_.facts().control);
  take.add_long(from);
  return ask(take, done);
}

pw_nic_status AskingStream::word(const Word& word) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (const pw_nic_status status = greet(); status != PW_NIC_OK) return status;
  return word_.remote != nullptr ? PW_NIC_BUSY : ask_to_store(word);
}

pw_nic_status AskingStream::ask_to_store(const Word& word) {
  if (!has_room(1)) return PW_NIC_BUSY;
  std::byte* bounce = box_.bounce[asked_ % kSlots];  // for memory that only the NIC reaches
  std::memcpy(bounce, &word.value, sizeof word.value);
  NicMessage store;
  store.kind = Ask::store;
  store.add_name(word.remote->key());
  store.add_long(word.offset);
  store.add_long(word.value);
  store.add_long(control_.offset_of(bounce));
  return ask(store, nullptr);
}

pw_nic_status AskingStream::put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                     uint64_t bytes, const Word& word, pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (const pw_nic_status status = greet(); status != PW_NIC_OK) return status;
  if (!has_room(2) || word_.remote != nullptr) return PW_NIC_BUSY;
  const pw_nic_status status = put(remote, offset, data, memory, bytes, done);
  if (status != PW_NIC_OK) return status;
  if (ask_to_store(word) == PW_NIC_BUSY) word_ = word;  // the NIC's own want of room
  return PW_NIC_OK;
}

pw_nic_status AskingStream::flush(pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (word_.remote != nullptr || flushed_ - flushes_ended_ == kFlushes) return PW_NIC_BUSY;
  flushes_[flushed_++ % kFlushes] = {done, asked_};
  activate();
  return PW_NIC_OK;
}

// ---- answers ----

void AskingStream::left(PutRequest&, pw_nic_status status) { note(status); }
void AskingStream::beat(Debt<AskingStream>&, pw_nic_status status) { note(status); }

void AskingStream::look_for_answers() {
  for (uint64_t number = ended_; number < asked_; ++number) {
    PutRequest& each = request(number);
    if (each.answered) continue;
    const uint64_t answer = std::atomic_ref(box_.answer[number % kSlots]).load(std::memory_order_acquire);
    if (answer >> 32 != tag_of(first_, number)) continue;
    each.answered = true;
    each.answer = static_cast<pw_nic_status>(answer & 0xff);
    if (refused_ == PW_NIC_OK) refused_ = each.answer;
  }
}

// In order, so that a slot is only used again when both ends are done with all before it.
unsigned AskingStream::end_requests() {
  unsigned ended = 0;
  for (; ended_ < asked_; ++ended_, ++ended) {
    PutRequest& next = request(ended_);
    if (failed_ == PW_NIC_OK && (!next.answered || next.under_way)) break;
    call(std::exchange(next.asker, nullptr), failed_ != PW_NIC_OK ? failed_ : next.answer);
  }
  return ended;
}

unsigned AskingStream::end_flushes() {
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

// An answer that does not come may be one of a peer that is gone.
void AskingStream::feel_pulse() {
  constexpr uint64_t kBeat = 10'000'000;  // ns
  if (debts_->pulse.under_way || coarse_now_ns() < next_beat_ns_) return;
  debts_->pulse.under_way = start_get_of_marker(&debts_->pulse) == PW_NIC_OK;
  next_beat_ns_ = coarse_now_ns() + kBeat;
}

unsigned AskingStream::advance(bool& unfinished) {
  if (word_.remote != nullptr && (failed_ != PW_NIC_OK || ask_to_store(word_) != PW_NIC_BUSY)) word_ = {};
  look_for_answers();
  const unsigned happened = end_requests() + end_flushes();
  unfinished = ended_ < asked_ || flushes_ended_ < flushed_ || word_.remote != nullptr;
  if (ended_ < asked_) feel_pulse();
  return happened;
}

void AskingStream::forget(const RemoteMemory& remote) {
  if (word_.remote == &remote) word_ = {};
}

}  // namespace pw::nic
