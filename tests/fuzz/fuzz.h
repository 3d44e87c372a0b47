// A parser that is fed any bytes: FUZZ(name) { ... } over `data` and `size`. It is a program of libFuzzer
// (make test-long), and a function that the unit tests call with the stored inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "device/shape.h"

namespace pw::fuzz {

using Fuzzer = void (*)(const uint8_t* data, size_t size);

/// Those of this program, by name, which is also that of the folder with their inputs.
inline std::map<std::string, Fuzzer>& fuzzers() {
  static std::map<std::string, Fuzzer> all;
  return all;
}

inline bool add(const char* name, Fuzzer fuzzer) { return fuzzers().emplace(name, fuzzer).second; }

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// One past the last byte that a block at an offset has.
inline uint64_t end_of(const Shape& shape, const Strides& strides, uint64_t offset) {
  uint64_t end = offset + shape.block_bytes;
  for (uint32_t d = 0; d < shape.dims; ++d) end += (shape.count[d] - 1) * static_cast<uint64_t>(strides[d]);
  return end;
}

}  // namespace pw::fuzz

#ifdef PEERWAY_LIBFUZZER
#define FUZZ(name)                                                          \
  static void name(const uint8_t* data, size_t size);                       \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    name(data, size);                                                       \
    return 0;                                                               \
  }                                                                         \
  static void name(const uint8_t* data, size_t size)
#else
#define FUZZ(name)                                                               \
  static void name(const uint8_t* data, size_t size);                            \
  [[maybe_unused]] static const bool name##_added = pw::fuzz::add(#name, &name); \
  static void name(const uint8_t* data, size_t size)
#endif
