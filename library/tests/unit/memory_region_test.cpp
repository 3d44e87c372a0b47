// Registration: what is shared, what becomes stale, what is refused.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <vector>

#include "base/status.h"
#include "context_ranks.h"
#include "made_up_device.h"
#include "memory/region.h"
#include "memory/words.h"

namespace pw {
namespace {

using testing::range;
using testing::Ranks;

std::string refusal(const std::function<void()>& body, pw_status expected) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

class Registration : public ::testing::Test {
 protected:
  ControlSegment control_;
  Registry registry_{control_};
  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 16);
};

TEST_F(Registration, OfOneSpanTwiceIsShared) {
  const auto first = registry_.add(memory_.data(), 4096);
  EXPECT_EQ(registry_.add(memory_.data(), 4096), first);
  EXPECT_NE(registry_.add(memory_.data(), 4095), first);
  EXPECT_NE(registry_.add(memory_.data() + 1, 4096), first);
}

TEST_F(Registration, OfPartOfAnAllocationIsSharedToo) {
  const auto whole = registry_.allocate(host_device(), 1 << 16);
  EXPECT_EQ(registry_.add(whole->address(), whole->bytes()), whole);
  const auto part = registry_.add(whole->address() + 100, 200);
  EXPECT_NE(part, whole);
  EXPECT_EQ(registry_.add(whole->address() + 100, 200), part);
  EXPECT_EQ(part->exported().handle, Handle::memfd);
  EXPECT_EQ(part->exported().offset, 100u);
}

/// Counts its allocations.
class CountingDevice final : public testing::MadeUpDevice {
 public:
  Allocation allocate(uint64_t bytes) override {
    ++allocations;
    return MadeUpDevice::allocate(bytes);
  }
  void release(const Allocation& allocation) noexcept override {
    ++released;
    MadeUpDevice::release(allocation);
  }
  void clear(void* address, uint64_t bytes) override {
    ++cleared;
    std::memset(address, 0, bytes);
  }
  std::unique_ptr<Queue> make_queue() override { return nullptr; }
  int allocations = 0, released = 0, cleared = 0;
};

TEST_F(Registration, OfPartsSharesAnAllocationOfAGpuButNoBytes) {
  CountingDevice device;
  auto first = registry_.allocate_part(device, 1000);
  auto second = registry_.allocate_part(device, 1000);
  EXPECT_EQ(device.allocations, 1);
  EXPECT_EQ(first->allocation().base, second->allocation().base);
  EXPECT_GE(second->address() - first->address(), 1000);
  std::byte* const used = first->address();
  first.reset();  // a peer may still write to it
  const auto third = registry_.allocate_part(device, 1000);
  EXPECT_NE(third->address(), used);
  EXPECT_EQ(device.cleared, 1);
  const auto large = registry_.allocate_part(device, 9 << 20);
  EXPECT_EQ(device.allocations, 2);
  EXPECT_EQ(device.cleared, 2);
  EXPECT_NE(large->allocation().base, third->allocation().base);
}

TEST_F(Registration, OfPartsEndsTheirAllocationWithTheLast) {
  CountingDevice device;
  auto first = registry_.allocate_part(device, 8), second = registry_.allocate_part(device, 8);
  first.reset();
  EXPECT_EQ(device.released, 0);
  second.reset();
  EXPECT_EQ(device.released, 1);
  std::vector<std::shared_ptr<Region>> many;
  while (device.allocations < 3) many.push_back(registry_.allocate_part(device, 1000000));
  many.resize(1);
  EXPECT_EQ(device.released, 2);
}

TEST_F(Registration, OfWordsClearsOnlyThoseThatWereUsedBefore) {
  CountingDevice device;
  WordPool pool(device, registry_);
  DeviceWords first = pool.take(1);
  const DeviceWords second = pool.take(2);
  EXPECT_EQ(device.cleared, 1);  // the allocation
  *first.address() = 7;
  pool.give(first);
  std::vector<DeviceWords> all;
  do {
    all.push_back(pool.take(1));
  } while (all.back().address() != first.address());
  EXPECT_EQ(*first.address(), 0U);
  EXPECT_EQ(device.cleared, 2);
  EXPECT_EQ(*second.address(), 0U);
}

/// Its memory was freed and is something else by the time that it is asked.
class ReusedMemory final : public testing::MadeUpDevice {
 public:
  std::unique_ptr<Queue> make_queue() override { return nullptr; }
  uint64_t allocation_id(const void*) override {
    on_query();
    return 1;
  }
  std::function<void()> on_query;
};

TEST_F(Registration, OfAReusedSpanHoldsUpNoOtherWhileAPeerIsStillServed) {
  ReusedMemory device;
  auto old = registry_.allocate(device, 4096);
  auto served = registry_.find(old->slot(), old->generation());  // as the service thread does
  device.on_query = [&] { old.reset(); };
  std::byte* const at = old->address();
  auto reused = std::async(std::launch::async, [&] { return registry_.add(at, 4096); });
  while (!served->closed()) sched_yield();
  EXPECT_NE(registry_.add(memory_.data(), 4096), nullptr);  // returns
  served.reset();
  EXPECT_FALSE(reused.get()->closed());
}

TEST_F(Registration, EndsWithTheLastOfThoseWhoShareIt) {
  auto first = registry_.add(memory_.data(), 4096);
  auto second = registry_.add(memory_.data(), 4096);
  const uint32_t slot = first->slot();
  const uint64_t generation = first->generation();
  first.reset();
  EXPECT_NE(registry_.find(slot, generation), nullptr);
  second.reset();
  EXPECT_EQ(registry_.find(slot, generation), nullptr);
  const auto next = registry_.add(memory_.data(), 4096);
  EXPECT_EQ(next->slot(), slot) << "this test wants the slot used again";
  EXPECT_EQ(registry_.find(slot, generation), nullptr);
  EXPECT_EQ(registry_.find(slot, next->generation()), next);
}

TEST_F(Registration, OfMemoryThatWasFreedAndReusedIsNewAndTheOldKeyStale) {
  auto whole = registry_.allocate(host_device(), 1 << 16);
  std::byte* const address = whole->address();
  const auto old = registry_.add(address + 4096, 8192);
  whole.reset();
  void* again =
      mmap(address, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(again, address);
  const auto fresh = registry_.add(address + 4096, 8192);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(fresh->exported().handle, Handle::process);
  EXPECT_TRUE(old->closed());
  EXPECT_EQ(registry_.find(old->slot(), old->generation()), nullptr);
  EXPECT_NE(control_.control().generation[old->slot()].load(), old->generation());
  EXPECT_EQ(registry_.find(fresh->slot(), fresh->generation()), fresh);
  munmap(again, 1 << 16);
}

TEST_F(Registration, OfOneSpanByManyThreadsIsOne) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::future<std::shared_ptr<Region>>> adding;
    for (int i = 0; i < 4; ++i)
      adding.push_back(std::async(std::launch::async, [&] { return registry_.add(memory_.data(), 64); }));
    std::vector<std::shared_ptr<Region>> added;
    for (auto& registration : adding) added.push_back(registration.get());
    EXPECT_EQ(std::set(added.begin(), added.end()).size(), 1u);
  }
}

TEST_F(Registration, RefusesWhatIsNoMemory) {
  EXPECT_NE(refusal([&] { registry_.add(nullptr, 8); }, PW_INVALID_ARGUMENT).find("8 bytes"),
            std::string::npos);
  EXPECT_NE(refusal([&] { registry_.add(memory_.data(), 0); }, PW_INVALID_ARGUMENT).find("0 bytes"),
            std::string::npos);
  refusal([&] { registry_.add(memory_.data(), UINT64_MAX); }, PW_OUT_OF_RANGE);
  EXPECT_NE(
      refusal([&] { registry_.add(reinterpret_cast<void*>(0x1000), 77); }, PW_INVALID_ARGUMENT).find("77"),
      std::string::npos);
  auto whole = registry_.allocate(host_device(), 4096);
  const std::string text = refusal([&] { registry_.add(whole->address() + 4000, 4096); }, PW_OUT_OF_RANGE);
  EXPECT_NE(text.find("4096"), std::string::npos) << text;
  refusal([&] { registry_.allocate(host_device(), 0); }, PW_INVALID_ARGUMENT);
  refusal([&] { registry_.allocate(host_device(), UINT64_MAX); }, PW_NO_MEMORY);
}

TEST(Slots, RunOutWithAMessageAndComeBack) {
  ControlSegment control;
  for (uint32_t i = 0; i < kRegionSlots; ++i) control.open_slot();
  EXPECT_NE(refusal([&] { control.open_slot(); }, PW_NO_MEMORY).find("65536"), std::string::npos);
  control.close_slot(17);
  EXPECT_EQ(control.open_slot(), 17u);
  EXPECT_EQ(control.control().generation[17].load(), 3u);
}

TEST_F(Registration, ThatFailsGivesItsAllocationBack) {
  for (uint32_t i = 0; i < kRegionSlots; ++i) control_.open_slot();
  std::byte* base = nullptr;
  {
    control_.close_slot(3);
    const auto region = registry_.allocate(host_device(), 4096);
    base = region->address();
  }
  ASSERT_EQ(control_.open_slot(), 3u);
  const int lowest_free = dup(0);
  close(lowest_free);
  EXPECT_NE(refusal([&] { registry_.allocate(host_device(), 4096); }, PW_NO_MEMORY).find("65536"),
            std::string::npos);
  const int next = dup(0);
  close(next);
  EXPECT_EQ(next, lowest_free) << "the descriptor of the memory is still open";
  EXPECT_EQ(host_device().allocation_id(base), 0u);
}

TEST(SignalWords, AreUsedAgainAsLateAsPossible) {
  ControlSegment control;
  const uint32_t first = control.take_words(1);
  control.give_words(first, 1);
  EXPECT_NE(control.take_words(1), first);
  const uint32_t lines = kSignalWords / kSignalUnit;
  for (uint32_t i = 0; i < lines - 1; ++i) control.take_words(1);
  EXPECT_NE(refusal([&] { control.take_words(1); }, PW_NO_MEMORY).find("65536"), std::string::npos);
}

TEST(Import, SharesTheMappingOfAnAllocation) {
  Ranks ranks(2);
  auto region = ranks[1].allocate({PW_HOST, 0}, 1 << 20);
  auto part = ranks[1].register_memory(region->address() + 4096, 4096);
  const auto whole = ranks.import(0, 1, *region);
  const auto piece = ranks.import(0, 1, *part);
  EXPECT_EQ(piece->host_address(), whole->host_address() + 4096);
  EXPECT_NE(whole->host_address(), region->address()) << "a mapping of its own, as in another process";
}

}  // namespace
}  // namespace pw
