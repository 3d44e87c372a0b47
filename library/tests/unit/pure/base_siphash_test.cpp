// SipHash against vectors of its reference implementation: key 00 01 .. 0f, text 00 01 .. of the length
// given.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/siphash.h"

namespace pw {
namespace {

std::string digest_of(size_t length) {
  Secret key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  std::vector<std::byte> text(length);
  for (size_t i = 0; i < length; ++i) text[i] = static_cast<std::byte>(i);
  std::string hex;
  for (const std::byte byte : siphash(key, text)) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(byte));
    hex += two;
  }
  return hex;
}

TEST(SipHash, AgreesWithTheReferenceVectors) {
  EXPECT_EQ(digest_of(0), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(digest_of(1), "da87c1d86b99af44347659119b22fc45");
  EXPECT_EQ(digest_of(2), "8177228da4a45dc7fca38bdef60affe4");
  EXPECT_EQ(digest_of(15), "5493e99933b0a8117e08ec0f97cfc3d9");
  EXPECT_EQ(digest_of(63), "5150d1772f50834a503e069a973fbd7c");
}

// Every length of a few blocks, and some up to the largest datagram.
TEST(SipHash, AgreesWithLibsodium) {
  void* library = dlopen("libsodium.so.23", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "libsodium23 is not installed";
  using Hash = int (*)(unsigned char*, const unsigned char*, unsigned long long, const unsigned char*);
  const auto theirs = reinterpret_cast<Hash>(dlsym(library, "crypto_shorthash_siphashx24"));
  ASSERT_NE(theirs, nullptr);
  std::mt19937_64 dice(std::random_device{}());
  const auto random = [&](size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(dice());
    return bytes;
  };
  const auto raw = [](const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); };
  for (size_t turn = 0; turn < 2048; ++turn) {
    const size_t length = turn < 1024 ? turn % 512 : dice() % 8400;
    const auto text = random(length), key = random(sizeof(Secret));
    Secret secret;
    std::copy(key.begin(), key.end(), secret.begin());
    Digest digest;
    auto* out = reinterpret_cast<unsigned char*>(digest.data());
    ASSERT_EQ(theirs(out, raw(text.data()), length, raw(key.data())), 0);
    ASSERT_EQ(siphash(secret, text), digest) << length;
  }
}

TEST(SipHash, ComparesDigests) {
  Digest a{}, b{};
  EXPECT_TRUE(equal_digests(a, b));
  b[15] = std::byte{1};
  EXPECT_FALSE(equal_digests(a, b));
}

}  // namespace
}  // namespace pw
