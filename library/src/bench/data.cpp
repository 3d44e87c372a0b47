#include "bench/data.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "base/status.h"
#include "device/device.h"

namespace pw::bench {
namespace {

constexpr std::byte kPoison{0xa5};
constexpr uint64_t kChunk =
    uint64_t{4} << 20;  ///< bytes; device memory is filled and checked through a buffer this large

uint64_t mixed(uint64_t x) {  // splitmix64 (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Generates the random bytes [offset, offset + bytes) of the sequence of `seed`; offset is a multiple of 8.
void random_bytes(std::byte* to, uint64_t offset, uint64_t bytes, uint64_t seed) {
  const uint64_t base = mixed(seed);
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t word = mixed(base + offset + at);
    std::memcpy(to + at, &word, std::min<uint64_t>(8, bytes - at));
  }
}

/// Copies between the host and any device; complete when it returns.
void copy_now(const pw_region* region, std::byte* to, const std::byte* from, uint64_t bytes) {
  const pw_device where = pw_region_device(region);
  if (where.kind == PW_HOST) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto queue = device({where.kind, where.index}).make_queue();
  Copy copy{to, from, {}};
  copy.layout.shape.block_bytes = bytes;
  pw_status status = queue->copy(copy, CopyBy::engine);
  while (status == PW_OK && !queue->idle(status)) std::this_thread::yield();
  if (status != PW_OK) throw Error(status, last_error_message());
}

std::byte* address_of(const pw_region* region) { return static_cast<std::byte*>(pw_region_address(region)); }

/// Calls `body(buffer, offset, bytes)` for chunks of the region's first `all` bytes, and stores each buffer
/// in the region.
template <typename Body>
void store_chunks(const pw_region* region, uint64_t all, Body body) {
  std::vector<std::byte> buffer(std::min(all, kChunk));
  for (uint64_t at = 0; at < all; at += kChunk) {
    const uint64_t bytes = std::min(kChunk, all - at);
    body(buffer.data(), at, bytes);
    copy_now(region, address_of(region) + at, buffer.data(), bytes);
  }
}

/// Writes what [at, at + bytes) of a target must contain: random data in the block's rows, poison between
/// them.
void expected(std::byte* to, uint64_t at, uint64_t bytes, const pw_block& block, uint64_t seed) {
  random_bytes(to, at, bytes, seed);
  const uint64_t pitch = block.dims == 0 ? block.block_bytes : static_cast<uint64_t>(block.stride[0]);
  if (pitch == block.block_bytes) return;
  for (uint64_t row = at / pitch; row * pitch < at + bytes; ++row) {
    const uint64_t gap = std::max(row * pitch + block.block_bytes, at);
    const uint64_t end = std::min((row + 1) * pitch, at + bytes);
    if (gap < end) std::memset(to + (gap - at), static_cast<int>(kPoison), end - gap);
  }
}

}  // namespace

void fill_random(const pw_region* region, uint64_t bytes, uint64_t seed) {
  store_chunks(region, bytes,
               [&](std::byte* to, uint64_t at, uint64_t part) { random_bytes(to, at, part, seed); });
}

void poison(const pw_region* region, uint64_t bytes) {
  store_chunks(region, bytes,
               [&](std::byte* to, uint64_t, uint64_t part) { std::fill_n(to, part, kPoison); });
}

void store(const pw_region* region, const std::byte* from, uint64_t bytes) {
  copy_now(region, address_of(region), from, bytes);
}

void load(const pw_region* region, std::byte* to, uint64_t bytes) {
  copy_now(region, to, address_of(region), bytes);
}

bool holds(const pw_region* region, const pw_block& block, uint64_t seed) {
  const uint64_t rows = block.dims == 0 ? 1 : block.count[0];
  const uint64_t pitch = block.dims == 0 ? block.block_bytes : static_cast<uint64_t>(block.stride[0]);
  const uint64_t all = (rows - 1) * pitch + block.block_bytes;
  std::vector<std::byte> actual(std::min(all, kChunk));
  std::vector<std::byte> wanted(actual.size());
  for (uint64_t at = 0; at < all; at += kChunk) {
    const uint64_t bytes = std::min(kChunk, all - at);
    copy_now(region, actual.data(), address_of(region) + at, bytes);
    expected(wanted.data(), at, bytes, block, seed);
    if (std::memcmp(actual.data(), wanted.data(), bytes) != 0) return false;
  }
  return true;
}

}  // namespace pw::bench
