#include "uct/peer.h"

#include "uct/domain.h"

namespace pw::uct {

Peer::Peer(Domain& domain, const nic::EndpointFacts& facts)
    : domain_(domain), facts_(facts), stream_(domain.endpoint().open(facts)) {}

// A status other than PW_NIC_OK and PW_NIC_BUSY means that the peer is gone or the NIC is broken, because the
// arguments were checked before. It ends this connection.
pw_nic_status Peer::started(pw_nic_status status) {
  if (status == PW_NIC_BUSY)
    domain_.set_out_of_room();
  else if (status != PW_NIC_OK)
    fail(status);
  return status;
}

pw_nic_status Peer::put_started(pw_nic_status status) {
  if (status == PW_NIC_OK) {
    puts_.accept();
    puts_.issue();
  }
  return started(status);
}

pw_nic_status Peer::put(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                        uint64_t bytes, Operation* operation) {
  if (failed()) return failed_;
  return put_started(stream_->put(remote, offset, data, memory, bytes, operation));
}

pw_nic_status Peer::put_word(nic::RemoteMemory& remote, uint64_t offset, const void* data,
                             nic::Memory* memory, uint64_t bytes, const nic::WordStore& word,
                             Operation* operation) {
  if (failed()) return failed_;
  return put_started(stream_->put_word(remote, offset, data, memory, bytes, word, operation));
}

pw_nic_status Peer::store_word(const nic::WordStore& word) {
  if (failed()) return failed_;
  return put_started(stream_->store_word(word));
}

pw_nic_status Peer::get(nic::RemoteMemory& remote, uint64_t offset, void* data, nic::Memory& memory,
                        uint64_t bytes, Operation& operation) {
  if (failed()) return failed_;
  operation.kind = Operation::Kind::get;
  const pw_nic_status status = started(stream_->get(remote, offset, data, memory, bytes, &operation));
  if (status == PW_NIC_OK) ++gets_;
  return status;
}

void Peer::settle(Operation* operation) {
  puts_.want();
  if (operation != nullptr) waiters_.push_back({now(), operation});
  advance();
}

void Peer::fence() {
  if (quiet()) return;
  barrier_ = now();
  settle(nullptr);
}

void Peer::ended(Operation::Kind kind, pw_nic_status status) {
  if (kind == Operation::Kind::get) ++gets_ended_;
  if (status != PW_NIC_OK) return fail(status);
  if (kind == Operation::Kind::flush) puts_.end();
  if (kind != Operation::Kind::put) release();
}

void Peer::fail(pw_nic_status status) {
  if (failed()) return;
  failed_ = status;
  why_ = domain_.endpoint().why(status);
  domain_.peer_failed();
  release();
}

void Peer::release() {
  while (!waiters_.empty() && reached(waiters_.front().point)) {
    Operation* operation = waiters_.front().operation;
    waiters_.pop_front();
    operation->status = failed_;
    domain_.report(operation);
  }
  if (puts_.wanting()) domain_.add_unsettled(*this);
}

void Peer::advance() {
  if (failed() || !puts_.due()) return;
  Operation* flush = domain_.operation(*this);
  flush->kind = Operation::Kind::flush;
  puts_.begin();
  const pw_nic_status status = stream_->flush(flush);
  if (status == PW_NIC_OK) return;
  domain_.recycle(flush);
  puts_.put_off();
  if (status == PW_NIC_BUSY)
    domain_.add_unsettled(*this);
  else
    fail(status);
}

}  // namespace pw::uct
