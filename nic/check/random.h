// Random numbers for the tests: the same seed gives the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace pw::nic::check {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {  // splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : next() % limit; }
  uint64_t between(uint64_t least, uint64_t most) { return least + below(most - least + 1); }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

/// Fills memory with bytes derived from `seed`, so that those of different puts can be distinguished.
inline void fill(std::byte* at, uint64_t bytes, uint64_t seed) {
  Random random(seed);
  for (uint64_t i = 0; i < bytes; i += 8) {
    const uint64_t word = random.next();
    for (uint64_t b = 0; b < 8 && i + b < bytes; ++b) at[i + b] = static_cast<std::byte>(word >> 8 * b);
  }
}

}  // namespace pw::nic::check
