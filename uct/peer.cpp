#include "uct/peer.h"

#include "base/format.h"
#include "base/log.h"
#include "uct/domain.h"

namespace pw::uct {

Peer::Peer(Domain& domain, const nic::Card& card)
    : domain_(domain), card_(card), stream_(domain.endpoint().open(card)) {}

// What is not PW_NIC_BUSY and not accepted is the end of this way: the arguments were checked before.
pw_nic_status Peer::note(pw_nic_status status, uint64_t& counter) {
  if (status == PW_NIC_OK)
    ++counter;
  else if (status == PW_NIC_BUSY)
    domain_.crowded();
  else
    fail(status);
  return status;
}

pw_nic_status Peer::put(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                        uint64_t bytes, Operation* operation) {
  if (failed()) return failed_;
  return note(stream_->put(remote, offset, data, memory, bytes, operation), puts_);
}

pw_nic_status Peer::put_word(nic::RemoteMemory& remote, uint64_t offset, const void* data,
                             nic::Memory* memory, uint64_t bytes, const nic::Word& word,
                             Operation* operation) {
  if (failed()) return failed_;
  return note(stream_->put_word(remote, offset, data, memory, bytes, word, operation), puts_);
}

pw_nic_status Peer::word(const nic::Word& word) {
  if (failed()) return failed_;
  return note(stream_->word(word), puts_);
}

pw_nic_status Peer::get(nic::RemoteMemory& remote, uint64_t offset, void* data, nic::Memory& memory,
                        uint64_t bytes, Operation& operation) {
  if (failed()) return failed_;
  operation.kind = Operation::Kind::get;
  return note(stream_->get(remote, offset, data, memory, bytes, &operation), gets_);
}

void Peer::settle(Operation* operation) {
  wanted_ = puts_;
  if (operation != nullptr) waiters_.push_back({now(), operation});
  advance();
}

void Peer::fence() {
  if (quiet()) return;
  barrier_ = now();
  settle(nullptr);
}

void Peer::ended(Operation::Kind kind, uint64_t mark, pw_nic_status status) {
  if (kind == Operation::Kind::get) ++gets_ended_;
  if (kind == Operation::Kind::flush) flushing_ = false;
  if (status != PW_NIC_OK) return fail(status);
  if (kind == Operation::Kind::flush) proven_ = mark;
  if (kind != Operation::Kind::put) release();
}

void Peer::fail(pw_nic_status status) {
  if (failed()) return;
  failed_ = status;
  if (!left)
    log(LogLevel::info,
        format("peerway: the way to endpoint {} failed: {}", card_.number, domain_.endpoint().why(status)));
  domain_.peer_failed();
  release();
}

void Peer::release() {
  while (!waiters_.empty() && reached(waiters_.front().mark)) {
    Operation* operation = waiters_.front().operation;
    waiters_.pop_front();
    operation->status = failed_;
    domain_.tell(operation);
  }
  if (wanted_ > proven_) domain_.restless(*this);
}

void Peer::advance() {
  if (failed() || flushing_ || wanted_ <= proven_) return;
  Operation* flush = domain_.operation(*this);
  flush->kind = Operation::Kind::flush;
  flush->mark = puts_;
  const pw_nic_status status = stream_->flush(flush);
  flushing_ = status == PW_NIC_OK;
  if (flushing_) return;
  domain_.recycle(flush);
  if (status == PW_NIC_BUSY)
    domain_.restless(*this);
  else
    fail(status);
}

}  // namespace pw::uct
