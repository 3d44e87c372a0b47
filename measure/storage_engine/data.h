// The bytes that are written: random by a seed, and with a stamp in each sector, so that no two sectors are
// alike. They can be neither compressed nor deduplicated, and a reader can check any of them by its place
// alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace pw::storage {

constexpr uint64_t kSector = 512;
constexpr uint64_t kPool =
    1 << 20;  // farther than a file system's compression looks back, and small enough for a cache

inline uint64_t mixed(uint64_t x) {  // splitmix64 (Steele, Lea and Flood, 2014)
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Data {
 public:
  explicit Data(uint64_t seed) : seed_(mixed(seed)), pool_(kPool / 8) {
    for (uint64_t i = 0; i < pool_.size(); ++i) pool_[i] = mixed(seed_ + i);
  }

  uint64_t stamp(uint64_t offset) const { return mixed(seed_ ^ (offset / kSector)); }

  // All bytes of [offset, offset + size), both multiples of a sector. Copies: for buffers that are used once.
  void fill(char* to, uint64_t offset, uint64_t size) const {
    const char* pool = reinterpret_cast<const char*>(pool_.data());
    for (uint64_t at = 0; at < size;) {
      const uint64_t from = (offset + at) % kPool, part = size - at < kPool - from ? size - at : kPool - from;
      std::memcpy(to + at, pool + from, part);
      at += part;
    }
    restamp(to, offset, size);
  }

  // Moves a buffer that was filled for another place to this one: only the stamps change, which costs little
  // of a write.
  void restamp(char* buffer, uint64_t offset, uint64_t size) const {
    for (uint64_t at = 0; at < size; at += kSector) {
      const uint64_t value = stamp(offset + at);
      std::memcpy(buffer + at, &value, sizeof value);
    }
  }

  // Whether every sector carries the stamp of its place.
  bool stamped(const char* buffer, uint64_t offset, uint64_t size) const {
    uint64_t wrong = 0;
    for (uint64_t at = 0; at < size; at += kSector) {
      uint64_t actual;
      std::memcpy(&actual, buffer + at, sizeof actual);
      wrong |= actual ^ stamp(offset + at);
    }
    return wrong == 0;
  }

 private:
  uint64_t seed_;
  std::vector<uint64_t> pool_;
};

}  // namespace pw::storage
