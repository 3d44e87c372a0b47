// Writes and reads bytes that travel between processes: little endian, with bounds checks when reading.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace pw {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView view_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

class ByteWriter {
 public:
  template <typename Integer>
    requires std::is_integral_v<Integer>
  void put(Integer value) {
    const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
    for (size_t i = 0; i < sizeof value; ++i) bytes_.push_back(static_cast<std::byte>(bits >> (8 * i)));
  }
  void put(ByteView raw) { bytes_.insert(bytes_.end(), raw.begin(), raw.end()); }
  /// Adds their length before them.
  void put_sized(ByteView raw) {
    put(static_cast<uint32_t>(raw.size()));
    put(raw);
  }
  void put_text(std::string_view text) { put_sized(view_of(text)); }
  [[nodiscard]] Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Throws Error(PW_INVALID_ARGUMENT) instead of reading past the end; `name` says what is read.
class ByteReader {
 public:
  ByteReader(ByteView bytes, const char* name) : rest_(bytes), name_(name) {}
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  ByteView take(size_t count) {
    if (count > rest_.size())
      throw Error(PW_INVALID_ARGUMENT, std::string(name_) + " is cut off: " + std::to_string(count) +
                                           " bytes wanted, " + std::to_string(rest_.size()) + " left");
    const ByteView taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  /// Takes the bytes that put_sized() wrote.
  ByteView take_sized() { return take(get<uint32_t>()); }
  template <typename Integer>
  Integer get() {
    std::make_unsigned_t<Integer> bits = 0;
    const ByteView raw = take(sizeof bits);
    for (size_t i = 0; i < sizeof bits; ++i)
      bits = static_cast<std::make_unsigned_t<Integer>>(
          bits | static_cast<std::make_unsigned_t<Integer>>(raw[i]) << (8 * i));
    return static_cast<Integer>(bits);
  }
  template <size_t Count>
  std::array<std::byte, Count> get_array() {
    std::array<std::byte, Count> array;
    std::memcpy(array.data(), take(Count).data(), Count);
    return array;
  }
  std::string get_text(size_t limit) {
    const size_t length = get<uint32_t>();
    if (length > limit)
      throw Error(PW_INVALID_ARGUMENT, std::string(name_) + " has a text of " + std::to_string(length) +
                                           " bytes; at most " + std::to_string(limit) + " are allowed");
    const ByteView raw = take(length);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  ByteView rest() { return take(rest_.size()); }
  void end() const {
    if (!rest_.empty())
      throw Error(PW_INVALID_ARGUMENT,
                  std::string(name_) + " has " + std::to_string(rest_.size()) + " bytes too many");
  }

 private:
  ByteView rest_;
  const char* name_;
};

}  // namespace pw
