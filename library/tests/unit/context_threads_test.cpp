// Many threads in many ranks at once on every path of the host: transfers, notifications, registrations,
// flushes. Meant for ThreadSanitizer, and right without it as well: what was notified adds up, and every
// thread's data is its own.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/status.h"
#include "context_ranks.h"

#if !defined(__SANITIZE_THREAD__) && defined(__has_feature)
#if __has_feature(thread_sanitizer)  // clang's name for it
#define __SANITIZE_THREAD__
#endif
#endif
#if defined(__SANITIZE_THREAD__)
// Two ends of a transfer see the counters that order it at two addresses, one a mapping, and the sanitizer
// does not know that they are one. So it cannot tell that the user's bytes were copied before they were
// looked at. Everything else, the library's own state above all, stays checked.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:pw::host_copy\n"; }
#endif

namespace pw {
namespace {

using testing::range;
using testing::Ranks;

using testing::kHost;
constexpr int kThreads = 4;
constexpr uint64_t kPart = 600 << 10;  // of a region, one a thread: more than two staging chunks

void as_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&body, t] { body(t); });
  for (auto& thread : threads) thread.join();
}

class Threads : public ::testing::TestWithParam<const char*> {};

// Each thread puts its own part to the other rank with a signal, gets it back and compares, in runs and in
// blocks.
TEST_P(Threads, MoveTheirOwnParts) {
  Ranks ranks(2);
  const auto size = kThreads * kPart;
  std::shared_ptr<Region> target[2];
  std::unique_ptr<Signal> arrived[2];
  for (int r : {0, 1}) {
    ranks[r].resolver().use(GetParam());
    target[r] = ranks[r].allocate(kHost, size);
    arrived[r] = std::make_unique<Signal>(ranks[r], 1 - r);
  }
  constexpr uint64_t kRounds = 12;
  ranks.each([&](int me) {
    Context& context = ranks[me];
    const auto remote = ranks.import(me, 1 - me, *target[1 - me]);
    const auto signal = ranks.import(me, *arrived[1 - me]);
    as_threads([&](int t) {
      std::vector<std::byte> mine(kPart), back(kPart);
      auto local = context.register_memory(mine.data(), mine.size());
      auto returned = context.register_memory(back.data(), back.size());
      std::minstd_rand random(static_cast<unsigned>(10 * me + t));
      for (uint64_t round = 0; round < kRounds; ++round) {
        for (uint64_t at = 0; at < kPart;
             at += sizeof(uint64_t)) {  // by words: sanitizers make each step slow
          const uint64_t word = uint64_t{random()} << 32 ^ random();
          std::memcpy(&mine[at], &word, sizeof word);
        }
        pw_block far = range(static_cast<uint64_t>(t) * kPart, kPart), near = range(0, kPart);
        if (round % 3 == 2) {  // every other block of 100 bytes
          far.block_bytes = near.block_bytes = 100;
          far.dims = near.dims = 1;
          far.count[0] = near.count[0] = kPart / 200;
          far.stride[0] = near.stride[0] = 200;
          std::memset(back.data(), 0, back.size());
        }
        const Notification notification{signal.get(), static_cast<uint64_t>(t) + 1};
        ASSERT_EQ(context.put_blocks(*remote, far, *local, near, &notification), PW_OK)
            << last_error_message();
        if (round % 2 == 0) {
          ASSERT_EQ(context.flush(1 - me, PW_FOREVER), PW_OK);
        }
        ASSERT_EQ(context.get_blocks(*remote, far, *returned, near), PW_OK) << last_error_message();
        ASSERT_EQ(context.flush(PW_ANY_RANK, PW_FOREVER), PW_OK);
        for (uint64_t b = 0; b < (near.dims == 0 ? 1 : near.count[0]); ++b)
          ASSERT_EQ(std::memcmp(&mine[200 * b], &back[200 * b], near.block_bytes), 0) << "round " << round;
      }
    });
  });
  for (const auto& signal : arrived)
    EXPECT_EQ(signal->value(), kRounds * kThreads * (kThreads + 1) / 2) << "by " << GetParam();
}

TEST_P(Threads, AddUpTheirNotifications) {
  Ranks ranks(3);
  const Signal signal(ranks[2], PW_ANY_RANK);
  constexpr uint64_t kNotifications = 300;
  auto target = ranks[2].allocate(kHost, 4096);
  ranks.each([&](int me) {
    ranks[me].resolver().use(GetParam());
    const auto shared = ranks.import(me, signal);
    const auto remote = ranks.import(me, 2, *target);
    auto local = ranks[me].allocate(kHost, 4096);
    as_threads([&](int t) {
      const auto own = ranks.import(me, signal);  // an import of its own notifies the same signal
      for (uint64_t i = 0; i < kNotifications; ++i) {
        const Notification notification{(i % 2 == 0 ? shared : own).get(), 1 + i % 3};
        const auto at = static_cast<uint64_t>(64 * (kThreads * me + t));
        const pw_status status =
            t % 2 == 0 ? ranks[me].notify(notification)
                       : ranks[me].put_blocks(*remote, range(at, 16), *local, range(at, 16), &notification);
        ASSERT_EQ(status, PW_OK) << last_error_message();
      }
      ASSERT_EQ(ranks[me].flush(2, PW_FOREVER), PW_OK);
    });
  });
  EXPECT_EQ(signal.value(), 3 * kThreads * kNotifications * 2);
  EXPECT_EQ(signal.wait(3 * kThreads * kNotifications * 2, 0), PW_OK);
}

INSTANTIATE_TEST_SUITE_P(Paths, Threads,
                         ::testing::Values("peer/shm", "peer/shm-nt", "peer/cma", "staged", "route"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace_if(name, [](char c) { return c == '/' || c == '-'; }, '_');
                           return name;
                         });

// Regions and signals come and go in all threads while others use theirs and one changes the paths.
TEST(ThreadsAtOnce, RegisterImportUseAndClose) {
  Ranks ranks(2);
  std::vector<std::byte> memory(1 << 20);
  std::atomic<bool> over{false};
  std::thread chooser([&] {
    for (int i = 0; !over; ++i) {
      constexpr const char* kPaths[] = {"staged", "route", "peer/cma"};
      ranks[0].resolver().use(kPaths[i % 3]);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  as_threads([&](int t) {
    std::vector<std::byte> own(4096, static_cast<std::byte>(t + 1));
    for (int round = 0; round < 150; ++round) {
      auto whole = ranks[1].register_memory(memory.data(), memory.size());  // shared by all threads
      auto region = ranks[1].allocate(kHost, 8192);
      auto local = ranks[0].register_memory(own.data(), own.size());
      Signal signal(ranks[1], 0);
      const auto far = ranks.import(0, 1, *region);
      const auto shared = ranks.import(0, 1, *whole);
      const auto there = ranks.import(0, signal);
      const Notification notification{there.get(), 1};
      const auto part = static_cast<uint64_t>(t) * 4096;
      ASSERT_EQ(ranks[0].put_blocks(*far, range(100, 4096), *local, range(0, 4096), &notification), PW_OK);
      ASSERT_EQ(ranks[0].put_blocks(*shared, range(part, 4096), *local, range(0, 4096), &notification),
                PW_OK);
      ASSERT_EQ(signal.wait(2, PW_FOREVER), PW_OK);
      ASSERT_EQ(region->address()[100], own[0]);
      ASSERT_EQ(memory[part + 4095], own[0]);
    }
  });
  over = true;
  chooser.join();
}

TEST(ThreadsAtOnce, SeveralContextsOfOneTeamOfOne) {
  Ranks ranks(1);
  as_threads([&](int t) {
    const auto team = make_team(0, 1, {});
    for (int round = 0; round < 10; ++round) {
      Context context(*team);
      auto region = context.allocate(kHost, 1 << 16);
      const auto remote = context.import(context.key_of(*region));
      for (const char* path : {"peer/shm", "staged", "peer/cma"}) {
        context.resolver().use(path);
        region->address()[0] = static_cast<std::byte>(t + round);
        ASSERT_EQ(context.put_blocks(*remote, range(1 << 15, 1 << 15), *region, range(0, 1 << 15), nullptr),
                  PW_OK);
        ASSERT_EQ(context.flush(0, PW_FOREVER), PW_OK);
        ASSERT_EQ(region->address()[1 << 15], static_cast<std::byte>(t + round));
      }
    }
  });
}

}  // namespace
}  // namespace pw
