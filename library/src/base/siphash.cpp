#include "base/siphash.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace pw {
namespace {

uint64_t load(std::span<const std::byte> bytes) {  // up to 8 bytes, little endian
  uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little)
    if (bytes.size() == sizeof word) {  // one load, which compilers do not generate for the loop
      std::memcpy(&word, bytes.data(), sizeof word);
      return word;
    }
  for (size_t i = 0; i < bytes.size(); ++i) word |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return word;
}

void store(std::byte* to, uint64_t word) {
  for (size_t i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

struct State {
  uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  }
  void absorb(uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  [[nodiscard]] uint64_t fold() const { return v0 ^ v1 ^ v2 ^ v3; }
};

}  // namespace

Digest siphash(const Secret& secret, std::span<const std::byte> text) {
  const uint64_t k0 = load(std::span(secret).first(8)), k1 = load(std::span(secret).last(8));
  // The words of the paper's "somepseudorandomlygeneratedbytes"; 0xee marks the 128-bit variant.
  State state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
              k1 ^ 0x7465646279746573};
  const uint64_t length = text.size();
  for (; text.size() >= 8; text = text.subspan(8)) state.absorb(load(text.first(8)));
  state.absorb(load(text) | length << 56);

  Digest digest;
  state.v2 ^= 0xee;
  state.rounds(4);
  store(digest.data(), state.fold());
  state.v1 ^= 0xdd;
  state.rounds(4);
  store(digest.data() + 8, state.fold());
  return digest;
}

uint64_t first_word(const Digest& digest) { return load(std::span(digest).first(8)); }

bool equal_digests(const Digest& a, const Digest& b) {
  std::byte difference{};
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{};
}

}  // namespace pw
