// Pinned memory in slots: what is pinned, and when a slot is used again.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "made_up_device.h"
#include "memory/pinned.h"

namespace pw {
namespace {

class PinningDevice final : public testing::MadeUpDevice {
 public:
  void pin(void*, uint64_t) override { ++pinned; }
  void unpin(void*) noexcept override { ++unpinned; }
  std::unique_ptr<Queue> make_queue() override { return nullptr; }
  int pinned = 0, unpinned = 0;
};

TEST(PinnedPool, PinsManySlotsAtOnce) {
  PinningDevice device;
  PinnedPool pool(device);
  std::vector<std::shared_ptr<void>> slots;
  std::set<void*> addresses;
  while (device.pinned < 2) {
    slots.push_back(pool.take());
    addresses.insert(slots.back().get());
  }
  EXPECT_EQ(slots.size(), 33U);
  EXPECT_EQ(addresses.size(), slots.size());
}

TEST(PinnedPool, GivesAReturnedSlotLastAndClean) {
  PinningDevice device;
  PinnedPool pool(device);
  std::shared_ptr<void> first = pool.take();
  void* const address = first.get();
  *static_cast<std::byte*>(address) = std::byte{7};
  first.reset();
  std::vector<std::shared_ptr<void>> others;
  do {
    others.push_back(pool.take());
  } while (others.back().get() != address);
  EXPECT_EQ(others.size(), 32U);
  EXPECT_EQ(*static_cast<std::byte*>(address), std::byte{0});
  EXPECT_EQ(device.pinned, 1);
}

TEST(PinnedPool, KeepsItsMemoryAsLongAsASlot) {
  PinningDevice device;
  auto pool = std::make_unique<PinnedPool>(device);
  std::shared_ptr<void> slot = pool->take();
  pool.reset();
  EXPECT_EQ(device.unpinned, 0);
  slot.reset();
  EXPECT_EQ(device.unpinned, 1);
}

}  // namespace
}  // namespace pw
