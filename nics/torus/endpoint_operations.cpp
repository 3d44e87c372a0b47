// Puts and gets of an endpoint, and how they end.
#include <algorithm>

#include "torus/endpoint.h"

namespace pw::torus {
namespace {

uint64_t packets_of(uint64_t bytes) {
  return std::max<uint64_t>(1, (bytes + kMostPayload - 1) / kMostPayload);
}

}  // namespace

pw_nic_status Endpoint::check(const Request& request, bool put) const {
  if (request.bytes > kLargest || !request.reach->holds(request.offset, request.bytes)) return PW_NIC_INVALID;
  if (request.memory == nullptr) {
    if (!put || request.bytes > kCopied) return PW_NIC_INVALID;
  } else if (!(*request.memory)->holds(request.data, request.bytes)) {
    return PW_NIC_INVALID;
  }
  return request.peer->gone() ? PW_NIC_UNREACHABLE : PW_NIC_OK;
}

bool Endpoint::at_once(const Request& request) const {
  return direct_ && request.reach->reachable() &&
         request.peer->under_way.load(std::memory_order_acquire) == 0 &&
         (request.memory == nullptr || (*request.memory)->kind == PW_NIC_HOST);
}

pw_nic_status Endpoint::start(const Request& request, bool put) {
  if (const pw_nic_status bad = check(request, put); bad != PW_NIC_OK) return bad;
  if (!at_once(request)) return post(request, put);
  if (ended_.size() == kEndedAtOnce) return PW_NIC_BUSY;
  auto& touching = board_->shared().seat[self_.number].touching[0][0];
  Reach& reach = *request.reach;
  const pw_nic_status status = put ? reach.put(request.offset, request.data, request.bytes, touching)
                                   : reach.get(request.offset, request.data, request.bytes, touching);
  if (status != PW_NIC_OK) return request.peer->gone() ? PW_NIC_UNREACHABLE : status;
  ++posted_.by_memory;
  count(*request.peer, put, request.bytes);
  if (request.done != nullptr) ended_.push_back({request.done, PW_NIC_OK});
  return PW_NIC_OK;
}

pw_nic_status Endpoint::post(const Request& request, bool put) {
  auto operation = std::make_unique<Operation>();
  operation->put = put;
  operation->peer = request.peer;
  operation->reach = request.reach;
  operation->offset = request.offset;
  operation->bytes = request.bytes;
  operation->local = static_cast<std::byte*>(request.data);
  operation->done = request.done;
  if (request.memory != nullptr) {
    operation->memory = *request.memory;
  } else {
    operation->copied.assign(operation->local, operation->local + request.bytes);
    operation->local = operation->copied.data();
  }
  const pw_nic_status status = engine_->submit(std::move(operation));
  if (status == PW_NIC_OK) count(*request.peer, put, request.bytes);
  return status;
}

void Endpoint::count(Peer& peer, bool put, uint64_t bytes) {
  ++(put ? posted_.puts : posted_.gets);
  (put ? posted_.put_bytes : posted_.get_bytes) += bytes;
  peer.packets_there += put ? packets_of(bytes) : 1;
  (put ? peer.bytes_there : peer.bytes_back) += bytes;
  if (!put) peer.packets_back += packets_of(bytes);
}

void Endpoint::settle(const Peer& peer) {
  const Way there = grid_.way(node_, peer.node), back = grid_.way(peer.node, node_);
  links_.add(there.links, peer.bytes_there, peer.packets_there);
  links_.add(back.links, peer.bytes_back, peer.packets_back);
}

// An operation that ended at once was posted when the engine had none before it, so what the engine ended
// until now comes first.
unsigned Endpoint::progress() {
  const size_t at_once = ended_.size();
  completed_.clear();
  engine_->take_completed(completed_);
  Engine::Completed told;
  told.swap(completed_);  // a `done` may post, and call progress() again
  for (const auto& [done, status] : told) done->call(done, status);
  auto count = static_cast<unsigned>(told.size());
  if (at_once == 0) return count;
  std::vector<Ended> now(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(at_once));
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(at_once));
  for (const Ended& one : now) one.done->call(one.done, one.status);
  return count + static_cast<unsigned>(now.size());
}

}  // namespace pw::torus
