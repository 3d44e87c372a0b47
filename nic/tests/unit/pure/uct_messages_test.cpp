// Data that arrives from a peer through UCX: addresses, keys of memory and messages. Anything that no process
// of the job made, or that is out of bounds, is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/status.h"
#include "held_nic.h"
#include "nic/endpoint.h"
#include "uct/address.h"
#include "uct/inbox.h"
#include "uct/memory.h"

namespace pw::uct {
namespace {

const Secret kJob{std::byte{1}}, kOtherJob{std::byte{2}};

pw_nic_key long_key(uint8_t filled) {
  pw_nic_key key{PW_NIC_KEY_BYTES, {}};
  std::memset(key.bytes, filled, sizeof key.bytes);
  return key;
}

Address sample_address() {
  Address address{};
  address.facts.number = 7;
  address.facts.endpoints = 4096;
  address.facts.guarantees = 3;
  address.facts.address.length = PW_NIC_ADDRESS_BYTES;
  std::memset(address.facts.address.bytes, 9, sizeof address.facts.address.bytes);
  address.facts.control = long_key(1);
  address.inbox = long_key(2);
  return address;
}

TEST(UctAddress, IsReadAsItWasWritten) {
  const std::string packed = pack(sample_address(), kJob);
  EXPECT_LE(packed.size(), 255u) << "UCX has room for no more";
  const Address read = unpack(packed.data(), kJob);
  EXPECT_EQ(read.facts.number, 7u);
  EXPECT_EQ(read.facts.endpoints, 4096u);
  EXPECT_EQ(read.facts.guarantees, 3u);
  EXPECT_TRUE(nic::equal(read.facts.control, long_key(1)));
  EXPECT_TRUE(nic::equal(read.inbox, long_key(2)));
}

TEST(UctAddress, OnlyTheJobMakesThem) {
  const std::string packed = pack(sample_address(), kJob);
  EXPECT_THROW(unpack(packed.data(), kOtherJob), Error);
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string altered = packed + std::string(256, '\0');  // the first byte may name up to 255
    altered[i] = static_cast<char>(altered[i] ^ 0x40);
    EXPECT_THROW(unpack(altered.data(), kJob), Error) << "byte " << i;
  }
}

TEST(UctKey, IsReadAsItWasPackedAndOnlyTheJobMakesIt) {
  const PackedKey packed = pack(0x7f0000001000, 4096, long_key(5), kJob);
  const PackedKey read = unpack_key(&packed, kJob);
  EXPECT_EQ(read.base, packed.base);
  EXPECT_EQ(read.bytes, packed.bytes);
  EXPECT_TRUE(nic::equal(read.key, packed.key));
  EXPECT_THROW(unpack_key(&packed, kOtherJob), Error);
  for (size_t i = 0; i < sizeof packed; ++i) {
    PackedKey altered = packed;
    reinterpret_cast<uint8_t*>(&altered)[i] ^= 1;
    EXPECT_THROW(unpack_key(&altered, kJob), Error) << "byte " << i;
  }
}

class UctInbox : public ::testing::Test {
 protected:
  UctInbox() {
    static const pw_nic_ops ops = nic::held::make_ops();
    world.states = world.keeps = PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS;
    nic::held::opening = &world;
    endpoint = std::make_unique<nic::Endpoint>(nic::Plugin::of(&ops, "held"), nic::Job{1, {}}, "");
    inbox = std::make_unique<Inbox>(*endpoint);
    memory = world.nics.front()->memories.back()->address;
  }

  /// Acts like a sender of that number, by puts.
  void send(uint32_t number, uint64_t count, uint8_t id, size_t bytes) {
    const uint64_t ring = ring_at(endpoint->info().endpoints, number);
    store(presence_at(number), static_cast<uint64_t>(Presence::here));
    store(slot_at(ring, count), slot_word(count, id, bytes));
  }
  void store(uint64_t at, uint64_t word) { std::memcpy(memory + at, &word, sizeof word); }
  std::vector<size_t> delivered() {
    std::vector<size_t> sizes;
    inbox->update_senders([](uint32_t) {});
    inbox->poll([&](uint8_t, void*, size_t bytes) { sizes.push_back(bytes); });
    return sizes;
  }

  nic::held::World world;
  std::unique_ptr<nic::Endpoint> endpoint;
  std::unique_ptr<Inbox> inbox;
  std::byte* memory = nullptr;
};

TEST_F(UctInbox, ALengthThatNoMessageHasEndsThatSenderAndNoOther) {
  send(3, 0, 1, kMessageBytes);
  send(4, 0, 1, kMessageBytes + 1);
  send(5, 0, kMessageKinds, 8);
  EXPECT_EQ(delivered(), std::vector<size_t>{kMessageBytes});
  send(3, 1, kMessageKinds - 1, 8);
  send(4, 1, 1, 8);
  send(5, 1, 1, 8);
  EXPECT_EQ(delivered(), std::vector<size_t>{8});
}

}  // namespace
}  // namespace pw::uct
