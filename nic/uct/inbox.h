// The inbox of an endpoint: registered memory into which the other endpoints put their messages. It has a
// ring buffer of slots for each of them, at a place that follows from the sender's endpoint number. The pages
// of a ring are first touched, and so allocated, when that sender uses it.
//
// A sender puts a message into the next slot of its ring, and then stores the slot's word. The word contains
// the number of the message, so the receiver can tell a new message from the one before, and nobody has to
// clear slots. The receiver stores the number of messages that it has taken in the first word of the ring. A
// sender to which the ring seems full gets that word.
//
// Before the rings there is one word for each endpoint number, in which a sender announces itself (Presence).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "nic/endpoint.h"

namespace pw::uct {

inline constexpr uint32_t kRingSlots = 32;
inline constexpr size_t kSlotBytes = 8192 + 64;
inline constexpr size_t kMessageBytes = kSlotBytes - sizeof(uint64_t);
inline constexpr uint8_t kMessageKinds = 32;  ///< the number of kinds in UCX
inline constexpr size_t kRingBytes = (64 + kRingSlots * kSlotBytes + 4095) / 4096 * 4096;

/// What the endpoint of a number has announced in its word of the inbox.
enum class Presence : uint64_t {
  unknown = 0,   ///< nothing: there is no such sender
  here = 1,      ///< it sends messages to this inbox
  departed = 2,  ///< it has closed
};

// Offsets in an inbox: of the presence word of endpoint `number`, of its ring, and of slots in a ring.
inline uint64_t presence_at(uint32_t number) { return uint64_t{number} * sizeof(uint64_t); }
inline uint64_t ring_at(uint32_t endpoints, uint32_t number) {
  return (uint64_t{endpoints} * sizeof(uint64_t) + 4095) / 4096 * 4096 + uint64_t{number} * kRingBytes;
}
inline uint64_t slot_at(uint64_t ring, uint64_t count) { return ring + 64 + count % kRingSlots * kSlotBytes; }

/// The word of the slot that has message `count`, counted from 0. Its upper 32 bits are count + 1, so that
/// zero-filled memory has no message; below are 8 bits for the kind of message and 24 bits for its length.
inline uint64_t slot_word(uint64_t count, uint8_t id, size_t bytes) {
  return (count + 1) << 32 | uint64_t{id} << 24 | bytes;
}

class Inbox {
 public:
  /// Throws Error. The domain's lock must be held, here and in the destructor.
  explicit Inbox(nic::Endpoint& endpoint);
  ~Inbox();
  Inbox(const Inbox&) = delete;

  [[nodiscard]] const pw_nic_key& key() const { return memory_->key(); }

  /// Calls deliver(id, data, bytes) for messages that have arrived, at most 16 from each sender. `id` is
  /// UCX's kind of message. Returns how many messages there were.
  template <typename Deliver>
  unsigned poll(Deliver&& deliver) {
    unsigned taken = 0;
    for (size_t i = 0; i < rings_.size(); ++i)
      if (!rings_[i].refused) taken += receive(rings_[i], deliver);
    return taken;
  }

  /// Reads the presence words: adds the rings of new senders, and calls gone(number) for senders that have
  /// closed.
  template <typename Gone>
  void update_senders(Gone&& gone) {
    for (uint32_t number = 0; number < endpoints_; ++number) {
      const Presence presence = presence_of(number);
      if (presence == known_[number]) continue;
      if (presence == Presence::departed) gone(number);
      add_ring(number, presence);
    }
  }

 private:
  struct Ring {
    std::byte* base;
    uint64_t taken;        ///< number of messages taken from it
    uint32_t number;       ///< endpoint number of the sender
    bool refused = false;  ///< the sender wrote an impossible message: nothing more is received from it
  };

  template <typename Deliver>
  unsigned receive(Ring& ring, Deliver& deliver) {
    constexpr unsigned kAtOnce = 16;
    std::byte* const base = ring.base;
    uint64_t taken = ring.taken;
    unsigned count = 0;
    for (; count < kAtOnce; ++count, ++taken) {
      std::byte* slot = base + slot_at(0, taken);
      const uint64_t word = __atomic_load_n(reinterpret_cast<uint64_t*>(slot), __ATOMIC_ACQUIRE);
      if (word >> 32 != ((taken + 1) & 0xffffffffu)) break;
      const auto id = static_cast<uint8_t>(word >> 24 & 0xff);
      const size_t bytes = word & 0xffffff;
      if (id >= kMessageKinds || bytes > kMessageBytes) {
        refuse(ring, id, bytes);
        break;
      }
      deliver(id, slot + sizeof word, bytes);
    }
    if (count == 0) return 0;
    ring.taken = taken;
    __atomic_store_n(reinterpret_cast<uint64_t*>(base), taken, __ATOMIC_RELEASE);
    return count;
  }
  [[nodiscard]] Presence presence_of(uint32_t number) const {
    return static_cast<Presence>(
        __atomic_load_n(reinterpret_cast<uint64_t*>(address_ + presence_at(number)), __ATOMIC_ACQUIRE));
  }
  /// Receives from the ring of that number from now on, also after the sender has closed: messages that it
  /// sent before are still there.
  void add_ring(uint32_t number, Presence presence);
  static void refuse(Ring& ring, uint8_t id, size_t bytes);

  uint32_t endpoints_;  ///< how many numbers endpoints may have
  size_t bytes_;        ///< size of the inbox
  Descriptor file_;
  std::byte* address_ = nullptr;
  std::unique_ptr<nic::Memory> memory_;
  std::vector<Presence> known_;
  std::vector<Ring> rings_;
};

}  // namespace pw::uct
