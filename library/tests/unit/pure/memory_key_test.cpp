// Keys: what goes in comes out, and nothing else is accepted.
#include <gtest/gtest.h>

#include <random>

#include "base/status.h"
#include "device/cuda/pointer.h"
#include "memory/key.h"

namespace pw {
namespace {

const KeySeal kSeal{0x1122334455667788, {std::byte{1}, std::byte{2}}};

Key sample() {
  Key key;
  key.type = KeyType::region;
  key.rank = 3;
  key.device = {PW_CUDA, 1};
  key.slot = 17;
  key.generation = 5;
  key.bytes = 1000;
  key.exported.handle = cuda::kIpc;
  key.exported.allocation = 99;
  key.exported.bytes = 4096;
  key.exported.offset = 512;
  key.exported.process = 4711;
  key.exported.descriptor = 12;
  key.exported.address = 0x7f0000001200;
  key.exported.device_uuid.fill(std::byte{7});
  key.exported.handle_bytes.fill(std::byte{9});
  key.attached = {{"ucx", {std::byte{1}, std::byte{2}, std::byte{3}}}, {"nic:toy", {std::byte{4}}}};
  key.why_none = "a reason";
  return key;
}

pw_status status_of(std::span<const std::byte> bytes) {
  try {
    parse_key(bytes, kSeal);
    return PW_OK;
  } catch (const Error& error) {
    EXPECT_GT(std::string(error.what()).size(), 20u) << "a message that says nothing";
    return error.status();
  }
}

TEST(Key, RoundTrip) {
  const Key key = sample();
  const Key back = parse_key(pack(key, kSeal), kSeal);
  EXPECT_EQ(pack(back, kSeal), pack(key, kSeal));
  EXPECT_EQ(back.rank, key.rank);
  EXPECT_EQ(back.device, key.device);
  EXPECT_EQ(back.exported.offset, key.exported.offset);
  EXPECT_EQ(back.exported.handle_bytes, key.exported.handle_bytes);
  EXPECT_EQ(back.attached, key.attached);
  EXPECT_EQ(back.why_none, key.why_none);
  EXPECT_LE(pack(key, kSeal).size(), size_t{PW_KEY_MAX});
}

TEST(Key, EveryDamagedByteIsRefused) {
  const auto good = pack(sample(), kSeal);
  for (size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= std::byte{0x40};
    const bool in_job = i >= 16 && i < 24;
    EXPECT_EQ(status_of(bad), in_job ? PW_FOREIGN_KEY : PW_BAD_KEY) << "byte " << i;
  }
}

TEST(Key, OnlyWhoHasTheSecretMakesKeys) {
  KeySeal other = kSeal;
  other.secret[15] = std::byte{1};
  EXPECT_EQ(status_of(pack(sample(), other)), PW_BAD_KEY);
  other.job = 7;
  EXPECT_EQ(status_of(pack(sample(), other)), PW_FOREIGN_KEY);
}

TEST(Key, EveryTruncationIsRefused) {
  const auto good = pack(sample(), kSeal);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_EQ(status_of({good.data(), length}), PW_BAD_KEY) << length << " bytes";
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(status_of(longer), PW_BAD_KEY);
}

TEST(Key, RegionOutsideItsAllocationIsRefused) {
  Key key = sample();
  key.exported.offset = 4000;
  EXPECT_EQ(status_of(pack(key, kSeal)), PW_BAD_KEY);
}

TEST(Key, SignalsInDeviceMemoryAreRowsOfWords) {
  Key key = sample();
  key.type = KeyType::signal;
  key.word = kNoWord;
  key.bytes = 24;
  EXPECT_EQ(status_of(pack(key, kSeal)), PW_OK);
  EXPECT_TRUE(is_device_signal(parse_key(pack(key, kSeal), kSeal)));
  for (const auto& damage : std::vector<void (*)(Key&)>{
           [](Key& bad) { bad.word = 8; }, [](Key& bad) { bad.bytes = 23; }, [](Key& bad) { bad.bytes = 0; },
           [](Key& bad) { bad.exported.offset = 4; }, [](Key& bad) { bad.exported.handle = Handle::none; },
           [](Key& bad) { bad.exported.bytes = 0; }}) {
    Key bad = key;
    damage(bad);
    EXPECT_EQ(status_of(pack(bad, kSeal)), PW_BAD_KEY);
  }
}

TEST(Key, TooLongReasonIsCut) {
  Key key = sample();
  key.why_none.assign(5000, 'x');
  EXPECT_EQ(parse_key(pack(key, kSeal), kSeal).why_none.size(), 300u);
}

}  // namespace
}  // namespace pw
