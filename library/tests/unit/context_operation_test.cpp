// Operations between ranks of one process: notifications and their order, mixed paths, what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "context_ranks.h"

namespace pw {
namespace {

using testing::range;
using testing::Ranks;

using testing::kHost;

TEST(Notification, OfAnotherRanksSignalFollowsTheData) {
  constexpr uint64_t kBytes =
      64 << 10;  // the thread sanitizer is slow where it cannot see what orders accesses
  for (const char* path : {"peer/shm", "peer/cma", "staged"}) {
    Ranks ranks(3);
    ranks[0].resolver().use(path);
    auto target = ranks[1].allocate(kHost, kBytes);
    auto source = ranks[0].allocate(kHost, kBytes);
    std::memset(source->address(), 7, source->bytes());
    const auto remote = ranks.import(0, 1, *target);
    const Signal third(ranks[2], 0);
    const auto there = ranks.import(0, third);
    const Notification notification{there.get(), 3};
    ASSERT_EQ(ranks[0].put_blocks(*remote, range(0, kBytes), *source, range(0, kBytes), &notification), PW_OK)
        << path;
    ASSERT_EQ(third.wait(3, PW_FOREVER), PW_OK);
    EXPECT_EQ(std::memcmp(target->address(), source->address(), kBytes), 0) << path;
  }
}

TEST(Notification, PastSixtyFourBitsIsRefused) {
  Ranks ranks(2);
  const Signal signal(ranks[1], 0);
  const auto there = ranks.import(0, signal);
  ASSERT_EQ(ranks[0].notify({there.get(), UINT64_MAX - 1}), PW_OK);
  EXPECT_EQ(ranks[0].notify({there.get(), 2}), PW_OUT_OF_RANGE);
  EXPECT_NE(std::string(last_error_message()).find("18446744073709551614"), std::string::npos);
  EXPECT_EQ(ranks[0].notify({there.get(), 1}), PW_OK);
  EXPECT_EQ(signal.value(), UINT64_MAX);
}

TEST(Notification, ByOneImportIsKnownToTheNext) {
  Ranks ranks(2);
  const Signal signal(ranks[1], PW_ANY_RANK);
  for (uint64_t i = 1; i <= 3; ++i) {
    const auto there = ranks.import(0, signal);
    ASSERT_EQ(ranks[0].notify({there.get(), 1}), PW_OK);
    EXPECT_EQ(signal.value(), i);
  }
}

// One thread notifies through `staged`, another through the CPU: each holds what the other needs, at some
// time.
TEST(Notification, ThroughTwoPathsByTwoThreadsEnds) {
  Ranks ranks(2);
  ranks[0].resolver().use("staged");
  auto target = ranks[1].allocate(kHost, 4096);
  auto source = ranks[0].allocate(kHost, 4096);
  const auto remote = ranks.import(0, 1, *target);
  const Signal signal(ranks[1], 0);
  const auto there = ranks.import(0, signal);
  constexpr uint64_t kTimes = 2000;
  std::thread other([&] {
    for (uint64_t i = 0; i < kTimes; ++i) ASSERT_EQ(ranks[0].notify({there.get(), 1}), PW_OK);
  });
  const Notification notification{there.get(), 1};
  for (uint64_t i = 0; i < kTimes; ++i)
    ASSERT_EQ(ranks[0].put_blocks(*remote, range(0, 64), *source, range(0, 64), &notification), PW_OK);
  other.join();
  ASSERT_EQ(ranks[0].flush(1, PW_FOREVER), PW_OK);
  EXPECT_EQ(signal.value(), 2 * kTimes);
}

TEST(Use, BackAndForthKeepsMovingData) {
  Ranks ranks(2);
  auto target = ranks[1].allocate(kHost, 4096);
  auto source = ranks[0].allocate(kHost, 4096);
  const auto remote = ranks.import(0, 1, *target);
  const Signal signal(ranks[1], 0);
  const auto there = ranks.import(0, signal);
  const Notification notification{there.get(), 1};
  uint64_t sent = 0;
  for (int round = 0; round < 100; ++round)
    for (const char* path : {"staged", "peer/shm", "peer/cma", "peer/shm-nt", "route"}) {
      ranks[0].resolver().use(path);
      source->address()[5] = static_cast<std::byte>(++sent);
      ASSERT_EQ(ranks[0].put_blocks(*remote, range(5, 1), *source, range(5, 1), &notification), PW_OK);
      ASSERT_EQ(signal.wait(sent, PW_FOREVER), PW_OK);
      ASSERT_EQ(target->address()[5], static_cast<std::byte>(sent)) << path;
    }
}

// Both ends cut the ring anew when the chunk size changes, with transfers of both directions before and
// after.
TEST(Staged, FollowsAChangingChunkSize) {
  Ranks ranks(2);
  ranks[0].resolver().use("staged");
  constexpr uint64_t kBytes = 3'000'001;
  auto target = ranks[1].allocate(kHost, kBytes);
  auto source = ranks[0].allocate(kHost, kBytes);
  auto back = ranks[0].allocate(kHost, kBytes);
  const auto remote = ranks.import(0, 1, *target);
  uint64_t seed = 1;
  for (int round = 0; round < 4; ++round)
    for (const uint64_t chunk : {4096u, 1u << 20, 12'288u, 1u, 262'144u, 700'000u}) {
      ranks[0].set_chunk_bytes(chunk);
      for (uint64_t i = 0; i < kBytes; ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        source->address()[i] = static_cast<std::byte>(seed >> 56);
      }
      ASSERT_EQ(ranks[0].put_blocks(*remote, range(0, kBytes), *source, range(0, kBytes), nullptr), PW_OK);
      if (round % 2 == 0) {
        ASSERT_EQ(ranks[0].flush(1, PW_FOREVER), PW_OK);
      }
      ASSERT_EQ(ranks[0].get_blocks(*remote, range(0, kBytes), *back, range(0, kBytes)), PW_OK);
      ASSERT_EQ(ranks[0].flush(1, PW_FOREVER), PW_OK);
      ASSERT_EQ(std::memcmp(source->address(), back->address(), kBytes), 0) << "chunks of " << chunk;
    }
}

TEST(Put, OfNothingStillNotifies) {
  Ranks ranks(1);
  auto region = ranks[0].allocate(kHost, 64);
  const auto remote = ranks.import(0, 0, *region);
  const Signal signal(ranks[0], 0);
  const auto own = ranks.import(0, signal);
  const Notification notification{own.get(), 2};
  pw_block none = range(8, 8);
  none.dims = 1;
  none.count[0] = 0;
  none.stride[0] = INT64_MAX;
  EXPECT_EQ(ranks[0].put_blocks(*remote, range(64, 0), *region, range(0, 0), &notification), PW_OK);
  EXPECT_EQ(ranks[0].put_blocks(*remote, none, *region, none, &notification), PW_OK);
  EXPECT_EQ(signal.value(), 4u);
}

TEST(Wait, EndsWithItsDeadline) {
  Ranks ranks(2);
  const Signal signal(ranks[0], 1);
  EXPECT_EQ(signal.wait(0, 0), PW_OK);
  EXPECT_EQ(signal.wait(1, 0), PW_TIMEOUT);
  EXPECT_EQ(signal.wait(1, 20'000'000), PW_TIMEOUT);
}

}  // namespace
}  // namespace pw
