// Keys: the bytes that let a peer import a region or a signal. A key is typed, versioned, bounds-checked, and
// authenticated by a secret that only the ranks of one job have; the parser is fuzzed. Programs may send keys
// by any means: a key that no rank of the job made is refused before its contents are used.
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

/// The word of a signal whose words lie in device memory: no control segment has it, so that a library that
/// knows no such signals refuses the key.
inline constexpr uint32_t kNoWord = UINT32_MAX;

struct Key {
  KeyType type = KeyType::region;
  int32_t rank = 0;
  DeviceId device;          ///< where the memory lives, as its owner numbers devices
  uint32_t slot = 0;        ///< in the owner's table of generations
  uint64_t generation = 0;  ///< the slot's value while the region is open
  uint64_t bytes = 0;
  Access access = Access::read_write;  ///< region
  uint32_t word = 0;                   ///< signal: its first word in the owner's control segment, or kNoWord
  int32_t sender = PW_ANY_RANK;        ///< signal: the rank that may notify it
  Export exported;                     ///< region, or the words of a signal in device memory
  std::string why_none;                ///< region that cannot be exported: why, and what to do
  /// Further data that peers need to reach it, by name: "ucx", "nic:torus". Only what the owner has.
  std::vector<std::pair<std::string, std::vector<std::byte>>> attached;

  /// The data attached by that name; null where there is none.
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

/// Bytes that may still be attached to it under a name of a few letters.
size_t room_in(const Key& key);

/// The secret that the keys of one job are made and checked with.
struct KeySeal {
  uint64_t job = 0;  ///< in clear in each key, so that another job's key is called that
  Secret secret{};
};

/// At most PW_KEY_MAX bytes.
std::vector<std::byte> pack(const Key& key, const KeySeal& seal);

/// Throws Error: PW_FOREIGN_KEY for a key of another job, PW_BAD_KEY naming what else is wrong; never reads
/// outside `bytes`.
Key parse_key(std::span<const std::byte> bytes, const KeySeal& seal);

/// The same of what the seal authenticates: for the two above and for the fuzzer, which can forge no seal.
std::vector<std::byte> pack_body(const Key& key, uint64_t job);
Key parse_body(std::span<const std::byte> body);

}  // namespace pw
