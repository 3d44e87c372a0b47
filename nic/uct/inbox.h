// Where messages of peers arrive: registered memory with a ring of slots for each number that a sender may
// have. The pages of a ring are touched, and so allocated, only if there is such a sender.
//
// A sender writes a message into the next slot and then the slot's word, which contains the number of the
// message, so slots need no reset. The receiver stores how many messages it has taken in the ring's first
// word; the sender gets that word when the ring seems full.
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

/// The values of the first words, one for each number: whether there is a sender.
enum class Presence : uint64_t { unknown = 0, here = 1, departed = 2 };

/// Offsets in an inbox; sender and receiver compute them alike.
inline uint64_t presence_at(uint32_t number) { return uint64_t{number} * sizeof(uint64_t); }
inline uint64_t ring_at(uint32_t endpoints, uint32_t number) {
  return (uint64_t{endpoints} * sizeof(uint64_t) + 4095) / 4096 * 4096 + uint64_t{number} * kRingBytes;
}
inline uint64_t slot_at(uint64_t ring, uint64_t count) { return ring + 64 + count % kRingSlots * kSlotBytes; }

/// The word of a slot: the number of the message, counted from 1 (its lower half), its kind and its length.
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

  /// Calls deliver(id, data, bytes) for messages that have arrived, a few from each sender. Returns how many.
  template <typename Deliver>
  unsigned poll(Deliver&& deliver) {
    unsigned taken = 0;
    for (size_t i = 0; i < rings_.size(); ++i)
      if (!rings_[i].refused) taken += receive(rings_[i], deliver);
    return taken;
  }

  /// Looks for new senders. Calls gone(number) for senders that have left.
  template <typename Gone>
  void look_around(Gone&& gone) {
    for (uint32_t number = 0; number < endpoints_; ++number) {
      const Presence presence = presence_of(number);
      if (presence == known_[number]) continue;
      if (presence == Presence::departed) gone(number);
      admit(number, presence);
    }
  }

 private:
  struct Ring {
    std::byte* base;
    uint64_t taken;
    uint32_t number;       ///< number of the sender
    bool refused = false;  ///< the sender broke the rules: nothing more is received from it
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
  void admit(uint32_t number, Presence presence);
  static void refuse(Ring& ring, uint8_t id, size_t bytes);

  uint32_t endpoints_;
  size_t bytes_;
  Descriptor file_;
  std::byte* address_ = nullptr;
  std::unique_ptr<nic::Memory> memory_;
  std::vector<Presence> known_;
  std::vector<Ring> rings_;
};

}  // namespace pw::uct
