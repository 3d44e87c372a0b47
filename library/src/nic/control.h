// The control memory of an endpoint: registered memory into which peers put markers, which tell how far their
// puts have arrived, and requests. It has a place for each endpoint number that a peer may have; pages of
// places that no peer uses are never touched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/descriptor.h"

namespace pw::nic {

/// Used with every NIC, for one peer. The peer puts `marker`; a marker that this end gets from the peer
/// arrives in `landing`.
struct alignas(16) Place {
  uint64_t marker;
  uint64_t landing;
};

/// How many requests one endpoint can have under way with another, and their sizes.
inline constexpr uint32_t kSlots = 16, kSlotWords = 64, kBounceBytes = 1024;

/// Used with NICs without guarantees (nic/message.h), for one peer. The peer puts its requests, and the
/// answers to this end's requests.
struct alignas(64) Box {
  uint64_t request[kSlots][kSlotWords];
  uint64_t answer[kSlots];
  uint64_t out[kSlots][kSlotWords];  ///< this end's requests, while the NIC reads them
  std::byte bounce[kSlots][kBounceBytes];
};

class ControlSpan {
 public:
  /// Throws Error.
  ControlSpan(uint32_t endpoints, bool with_boxes);
  ~ControlSpan();
  ControlSpan(const ControlSpan&) = delete;

  [[nodiscard]] Place& place(uint32_t number) const { return reinterpret_cast<Place*>(address_)[number]; }
  [[nodiscard]] Box& box(uint32_t number) const {
    return *reinterpret_cast<Box*>(address_ + box_at(endpoints_, number));
  }
  [[nodiscard]] void* address() const { return address_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  [[nodiscard]] uint64_t offset_of(const void* address) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(address) - address_);
  }

  /// Offsets of the same in the span of an endpoint that has places for `endpoints` endpoints.
  static uint64_t place_at(uint32_t number) { return uint64_t{number} * sizeof(Place); }
  static uint64_t box_at(uint32_t endpoints, uint32_t number) {
    const uint64_t places = (uint64_t{endpoints} * sizeof(Place) + 4095) / 4096 * 4096;
    return places + uint64_t{number} * sizeof(Box);
  }

 private:
  uint32_t endpoints_;
  uint64_t bytes_;
  Descriptor descriptor_;
  std::byte* address_ = nullptr;
};

}  // namespace pw::nic
