// Messages between endpoints of a NIC without guarantees, in memory whose words may arrive in any order.
// Every word carries the tag of its message, so the reader knows when all of them have arrived. A slot is
// reused, with the next tag, once its answer was seen: by then all of its words had arrived.
//
// Request k of an endpoint lies in slot k % kSlots with the tag first + k / kSlots. `first` is random, drawn
// when the stream is opened and sent with the marker, so that words which an earlier endpoint of the same
// number left behind are not taken for a new request.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "nic/control.h"
#include "nic/endpoint.h"

namespace pw::nic {

enum class RequestKind : uint8_t {
  hello = 1,  ///< the sender introduces itself: the first request
  get = 2,    ///< get these bytes
  store = 3,  ///< store this word, after everything requested before
};

inline uint32_t tag_of(uint32_t first, uint64_t request) {
  return first + static_cast<uint32_t>(request / kSlots);
}

struct NicMessage {
  RequestKind kind = RequestKind::hello;
  uint32_t count = 1;  ///< number of words, including the head
  std::array<uint32_t, kSlotWords> content{};

  void add(uint32_t value) { content[count++] = value; }
  void add_long(uint64_t value) {
    add(static_cast<uint32_t>(value));
    add(static_cast<uint32_t>(value >> 32));
  }
  /// Adds a pw_nic_key or pw_nic_address of at most 64 bytes.
  template <typename Name>
  void add_name(const Name& name) {
    add(name.length);
    std::memcpy(&content[count], name.bytes, name.length);
    count += (name.length + 3) / 4;
  }

  /// Writes the message to the slot.
  void write(uint64_t* slot, uint32_t tag) const {
    slot[0] = uint64_t{tag} << 32 | count << 8 | static_cast<uint32_t>(kind);
    for (uint32_t i = 1; i < count; ++i) slot[i] = uint64_t{tag} << 32 | content[i];
  }
  /// Reads the message; returns false if some words have not arrived yet.
  bool read(uint64_t* slot, uint32_t tag) {
    const auto word = [&](uint32_t i) { return std::atomic_ref(slot[i]).load(std::memory_order_acquire); };
    const uint64_t head = word(0);
    if (head >> 32 != tag) return false;
    kind = static_cast<RequestKind>(head & 0xff);
    count = static_cast<uint32_t>(head) >> 8;
    if (count == 0 || count > kSlotWords) return false;
    for (uint32_t i = 1; i < count; ++i) {
      const uint64_t each = word(i);
      if (each >> 32 != tag) return false;
      content[i] = static_cast<uint32_t>(each);
    }
    return true;
  }
};

/// Reads what the add functions added, in the same order. Missing members are zero.
class MessageReader {
 public:
  explicit MessageReader(const NicMessage& message) : message_(message) {}
  uint32_t next() { return at_ < message_.count ? message_.content[at_++] : 0; }
  uint64_t next_long() {
    const uint64_t low = next();
    return low | uint64_t{next()} << 32;
  }
  template <typename Name>
  Name next_name() {
    Name name{};
    const uint32_t length = next(), words = (length + 3) / 4;
    if (length > sizeof name.bytes || words > message_.count - at_) return name;
    std::memcpy(name.bytes, &message_.content[at_], length);
    name.length = length;
    at_ += words;
    return name;
  }

 private:
  const NicMessage& message_;
  uint32_t at_ = 1;
};

/// The answer to a request is one word.
inline uint64_t answer_word(uint32_t tag, pw_nic_status status) {
  return uint64_t{tag} << 32 | 0x100u | static_cast<uint32_t>(status);
}

}  // namespace pw::nic
