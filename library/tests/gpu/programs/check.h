// Helpers of the checks between two processes: results as JSON lines, random data, references on the
// CPU, and fixed-size messages over a socket pair.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "device/device.h"

namespace check {

inline int failures = 0;

/// Prints one line; counts it when it failed.
inline void report(const std::string& name, bool ok, nlohmann::json detail = nlohmann::json::object()) {
  if (!ok) ++failures;
  const nlohmann::json line = {{"check", name}, {"ok", ok}, {"detail", std::move(detail)}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

inline std::vector<std::byte> random_bytes(size_t bytes, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = engine();
    std::memcpy(&data[i], &word, std::min<size_t>(8, bytes - i));
  }
  return data;
}

inline uint64_t hash(const std::vector<std::byte>& data) {
  uint64_t value = 14695981039346656037ull;
  for (std::byte b : data) value = (value ^ static_cast<uint64_t>(b)) * 1099511628211ull;
  return value;
}

/// The copy by the CPU, block by block.
inline void reference(const pw::Layout& layout, std::byte* to, const std::byte* from, uint32_t d = 0) {
  if (d == layout.shape.dims) {
    std::memcpy(to, from, layout.shape.block_bytes);
    return;
  }
  for (uint64_t i = 0; i < layout.shape.count[d]; ++i)
    reference(layout, to + static_cast<int64_t>(i) * layout.to[d],
              from + static_cast<int64_t>(i) * layout.from[d], d + 1);
}

inline double microseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Transfers whole messages; an incomplete one ends the process, because the two sides run in step.
template <typename Message>
void send(int socket, const Message& message) {
  if (::write(socket, &message, sizeof message) != static_cast<ssize_t>(sizeof message)) std::_Exit(3);
}
template <typename Message>
Message receive(int socket) {
  Message message;
  size_t have = 0;
  while (have < sizeof message) {
    const ssize_t got = ::read(socket, reinterpret_cast<char*>(&message) + have, sizeof message - have);
    if (got <= 0) std::_Exit(4);
    have += static_cast<size_t>(got);
  }
  return message;
}

/// Waits until the queue is done; the error if it has one.
inline pw_status finish(pw::Queue& queue) {
  pw_status status = PW_OK;
  while (!queue.idle(status)) {
  }
  return status;
}

inline pw::Copy contiguous(std::byte* to, const std::byte* from, uint64_t bytes) {
  pw::Copy copy{to, from, {}};
  copy.layout.shape.block_bytes = bytes;
  return copy;
}

}  // namespace check
