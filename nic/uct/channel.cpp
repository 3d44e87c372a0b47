#include "uct/channel.h"

#include <cstring>

#include "uct/domain.h"

namespace pw::uct {

Channel::Channel(Domain& domain, Peer& peer, const pw_nic_key& inbox)
    : domain_(domain),
      peer_(peer),
      inbox_(peer.stream().import(inbox)),
      ring_(ring_at(peer.facts().endpoints, domain.endpoint().info().number)) {
  room();
}

bool Channel::room() {
  if (!announced_) {
    const uint64_t place = presence_at(domain_.endpoint().info().number);
    announced_ = peer_.word({inbox_.get(), place, static_cast<uint64_t>(Presence::here)}) == PW_NIC_OK;
    if (!announced_) return false;  // the receiver would not look for messages
  }
  if (!known_ || sent_ - taken_ >= kRingSlots / 2) request_count();
  return known_ && sent_ - taken_ < kRingSlots;
}

pw_nic_status Channel::send(uint8_t id, const void* data, size_t bytes, nic::Memory* memory,
                            Operation* operation) {
  const uint64_t slot = slot_at(ring_, sent_);
  const nic::Word word{inbox_.get(), slot, slot_word(sent_, id, bytes)};
  const pw_nic_status status =
      bytes == 0 ? peer_.word(word)
                 : peer_.put_word(*inbox_, slot + sizeof(uint64_t), data, memory, bytes, word, operation);
  if (status == PW_NIC_OK) ++sent_;
  return status;
}

void Channel::probe() { request_count(); }

bool Channel::leave() {
  if (!announced_ || departed_ || peer_.failed()) return true;
  const uint64_t place = presence_at(domain_.endpoint().info().number);
  departed_ = peer_.word({inbox_.get(), place, static_cast<uint64_t>(Presence::departed)}) == PW_NIC_OK;
  if (departed_) peer_.settle(nullptr);
  return departed_ || peer_.failed();
}

void Channel::request_count() {
  if (count_requested_ || peer_.failed()) return;
  Operation* operation = domain_.operation(peer_);
  if (!domain_.lend(*operation)) return;
  operation->unpack = [](void* channel, const void* data, size_t) {
    uint64_t count = 0;
    std::memcpy(&count, data, sizeof count);
    static_cast<Channel*>(channel)->counted(count);
  };
  operation->unpack_arg = this;
  operation->bytes = sizeof(uint64_t);
  count_requested_ = peer_.get(*inbox_, ring_, operation->bounce.data, *operation->bounce.memory,
                               sizeof(uint64_t), *operation) == PW_NIC_OK;
  if (!count_requested_) domain_.recycle(operation);
}

void Channel::counted(uint64_t count) {
  count_requested_ = false;
  if (!known_) sent_ = count;
  if (count < taken_ || count > sent_) return peer_.fail(PW_NIC_INVALID);  // it took what nobody sent
  known_ = true;
  taken_ = count;
}

}  // namespace pw::uct
