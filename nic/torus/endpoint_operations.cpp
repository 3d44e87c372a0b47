// Puts and gets of an endpoint, and how they end.
#include <algorithm>

#include "torus/endpoint.h"

namespace pw::torus {
namespace {

uint64_t packets_of(uint64_t bytes) {
  return std::max<uint64_t>(1, (bytes + kMostPayload - 1) / kMostPayload);
}

}  // namespace

pw_nic_status Endpoint::check(const Access& access, bool put) const {
  if (access.bytes > kLargest || !access.target->holds(access.offset, access.bytes)) return PW_NIC_INVALID;
  if (access.memory == nullptr) {
    if (!put || access.bytes > kCopied) return PW_NIC_INVALID;
  } else if (!(*access.memory)->holds(access.data, access.bytes)) {
    return PW_NIC_INVALID;
  }
  return access.peer->gone() ? PW_NIC_UNREACHABLE : PW_NIC_OK;
}

bool Endpoint::at_once(const Access& access) const {
  return direct_ && access.target->reachable() &&
         access.peer->under_way.load(std::memory_order_acquire) == 0 &&
         (access.memory == nullptr || (*access.memory)->kind == PW_NIC_HOST);
}

pw_nic_status Endpoint::start(const Access& access, bool put) {
  if (const pw_nic_status bad = check(access, put); bad != PW_NIC_OK) return bad;
  if (!at_once(access)) return post(access, put);
  if (ended_.size() == kEndedAtOnce) return PW_NIC_BUSY;
  auto& touching = directory_->shared().entry[self_.number].touching[0][0];
  PeerMemory& target = *access.target;
  const pw_nic_status status = put ? target.put(access.offset, access.data, access.bytes, touching)
                                   : target.get(access.offset, access.data, access.bytes, touching);
  if (status != PW_NIC_OK) return access.peer->gone() ? PW_NIC_UNREACHABLE : status;
  ++posted_.by_memory;
  count(*access.peer, put, access.bytes);
  if (access.done != nullptr) ended_.push_back({access.done, PW_NIC_OK});
  return PW_NIC_OK;
}

pw_nic_status Endpoint::post(const Access& access, bool put) {
  auto operation = std::make_unique<Operation>();
  operation->put = put;
  operation->peer = access.peer;
  operation->target = access.target;
  operation->offset = access.offset;
  operation->bytes = access.bytes;
  operation->local = static_cast<std::byte*>(access.data);
  operation->done = access.done;
  if (access.memory != nullptr) {
    operation->memory = *access.memory;
  } else {
    operation->copied.assign(operation->local, operation->local + access.bytes);
    operation->local = operation->copied.data();
  }
  const pw_nic_status status = engine_->submit(std::move(operation));
  if (status == PW_NIC_OK) count(*access.peer, put, access.bytes);
  return status;
}

void Endpoint::count(TorusPeer& peer, bool put, uint64_t bytes) {
  ++(put ? posted_.puts : posted_.gets);
  (put ? posted_.put_bytes : posted_.get_bytes) += bytes;
  peer.packets_to += put ? packets_of(bytes) : 1;
  (put ? peer.bytes_to : peer.bytes_from) += bytes;
  if (!put) peer.packets_from += packets_of(bytes);
}

void Endpoint::settle(const TorusPeer& peer) {
  const Route route_to = grid_.route(node_, peer.node), route_from = grid_.route(peer.node, node_);
  links_.add(route_to.links, peer.bytes_to, peer.packets_to);
  links_.add(route_from.links, peer.bytes_from, peer.packets_from);
}

// An operation that ended at once was posted when the engine had no earlier operation, so what the engine has
// ended since is reported first.
unsigned Endpoint::progress() {
  const size_t at_once = ended_.size();
  completed_.clear();
  engine_->take_completed(completed_);
  Engine::Completed completed;
  completed.swap(completed_);  // a `done` may post, and call progress() again
  for (const auto& [done, status] : completed) done->call(done, status);
  auto count = static_cast<unsigned>(completed.size());
  if (at_once == 0) return count;
  std::vector<Ended> now(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(at_once));
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(at_once));
  for (const Ended& ended : now) ended.done->call(ended.done, ended.status);
  return count + static_cast<unsigned>(now.size());
}

}  // namespace pw::torus
