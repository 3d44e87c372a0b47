// Datagrams: what is accepted as one, and what is not.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "torus/file.h"
#include "torus/packet.h"

namespace pw::torus {
namespace {

Secret key_of(uint8_t job) { return {std::byte{job}}; }

std::vector<std::byte> put_datagram(uint8_t job, size_t bytes) {
  Header header{};
  header.kind = Kind::put;
  header.bytes = static_cast<uint16_t>(bytes);
  header.sequence = 1;
  std::vector<std::byte> datagram(sizeof header + bytes, std::byte{7});
  std::memcpy(datagram.data(), &header, sizeof header);
  seal(datagram, key_of(job));
  return datagram;
}

TEST(TorusPacket, IsReadAsItWasWritten) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, size_t{kMostPayload}}) {
    Packet packet;
    const auto datagram = put_datagram(5, bytes);
    ASSERT_TRUE(open_packet(datagram, key_of(5), packet));
    EXPECT_EQ(packet.header.sequence, 1u);
    EXPECT_EQ(packet.payload.size(), bytes);
  }
}

TEST(TorusPacket, IsRefusedWithAnyBitWrong) {
  const auto good = put_datagram(5, 40);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto damaged = good;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    Packet packet;
    EXPECT_FALSE(open_packet(damaged, key_of(5), packet)) << bit;
  }
}

TEST(TorusPacket, IsRefusedFromAnotherJobAndWhenCutOff) {
  const auto good = put_datagram(5, 40);
  Packet packet;
  EXPECT_FALSE(open_packet(good, key_of(6), packet));
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_FALSE(open_packet(std::span(good).first(bytes), key_of(5), packet));
}

// Sealed with the job's key, but invalid.
TEST(TorusPacket, IsRefusedWhenItMakesNoSense) {
  const auto refused = [](auto&& change) {
    auto datagram = put_datagram(5, 8);
    Header header;
    std::memcpy(&header, datagram.data(), sizeof header);
    change(header);
    std::memcpy(datagram.data(), &header, sizeof header);
    seal(datagram, key_of(5));
    Packet packet;
    return !open_packet(datagram, key_of(5), packet);
  };
  EXPECT_FALSE(refused([](Header&) {}));
  EXPECT_TRUE(refused([](Header& h) { h.kind = static_cast<Kind>(8); }));
  EXPECT_TRUE(refused([](Header& h) { h.kind = Kind::get; }));  // which has no payload
  EXPECT_TRUE(refused([](Header& h) { h.bytes = 9; }));
  EXPECT_TRUE(refused([](Header& h) { h.sequence = 0; }));
  EXPECT_TRUE(refused([](Header& h) { h.from = kMostEndpoints; }));
  EXPECT_TRUE(refused([](Header& h) { h.to = kMostEndpoints; }));
  EXPECT_TRUE(refused([](Header& h) { h.offset = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Header& h) { h.offset = 9, h.total = UINT64_MAX; }));
}

}  // namespace
}  // namespace pw::torus
