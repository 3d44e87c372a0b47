// Keys: the bytes that let a peer import a region or a signal. A key is typed, versioned, bounds-checked, and
// authenticated by a secret that only the ranks of one job have; the parser is fuzzed. Programs may send keys
// by any means: a key that was not made by a rank of the job is refused before its contents are used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/siphash.h"
#include "device/device.h"
#include "device/shape.h"

namespace pw {

enum class KeyType : uint8_t { region = 1, signal = 2 };

/// The word of a signal whose words lie in device memory. No control segment has a word with this number, so
/// a library that does not know such signals refuses the key.
inline constexpr uint32_t kNoWord = UINT32_MAX;

struct Key {
  KeyType type = KeyType::region;
  int32_t rank = 0;
  DeviceId device;          ///< where the memory lives, as its owner numbers devices
  uint32_t slot = 0;        ///< index in the owner's table of generations
  uint64_t generation = 0;  ///< the slot's value while the region is open
  uint64_t bytes = 0;
  Access access = Access::read_write;  ///< region
  uint32_t word = 0;                   ///< signal: its first word in the owner's control segment, or kNoWord
  int32_t sender = PW_ANY_RANK;        ///< signal: the rank that may notify it
  Export exported;                     ///< region, or the words of a signal in device memory
  std::string why_none;                ///< region that cannot be exported: why, and what to do
  /// Further data, by name, that peers need to reach the memory: "ucx", "nic:torus". Only those that the
  /// owner has.
  std::vector<std::pair<std::string, std::vector<std::byte>>> attached;

  /// Returns the data attached under that name, or null.
  [[nodiscard]] const std::vector<std::byte>* attachment(std::string_view name) const {
    for (const auto& [known, content] : attached)
      if (known == name) return &content;
    return nullptr;
  }
};

/// Whether the key is that of a signal in device memory.
inline bool is_device_signal(const Key& key) {
  return key.type == KeyType::signal && key.device.kind != PW_HOST;
}

/// Returns how many bytes can still be attached to the key under a name of a few letters.
size_t room_in(const Key& key);

/// The secret with which the keys of one job are made and checked.
struct KeySeal {
  uint64_t job = 0;  ///< stored in clear in each key, so that the key of another job is reported as such
  Secret secret{};
};

/// Returns at most PW_KEY_MAX bytes.
std::vector<std::byte> pack(const Key& key, const KeySeal& seal);

/// Throws Error(PW_FOREIGN_KEY) for a key of another job, and Error(PW_BAD_KEY), which says what is wrong,
/// for any other invalid key. Never reads outside `bytes`.
Key parse_key(std::span<const std::byte> bytes, const KeySeal& seal);

/// The same for the part that the seal authenticates: for the two functions above and for the fuzzer, which
/// cannot forge a seal.
std::vector<std::byte> pack_body(const Key& key, uint64_t job);
Key parse_body(std::span<const std::byte> body);

}  // namespace pw
