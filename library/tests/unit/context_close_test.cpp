// Transfers and waits while their context, region or signal is closed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/status.h"
#include "context_ranks.h"

namespace pw {
namespace {

using testing::range;
using testing::Ranks;

constexpr uint64_t kMiB = 1 << 20;

pw_status status_after(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.status();
  }
  return PW_OK;
}

TEST(ContextClose, EndsAStagedTransferFromAPeer) {
  std::vector<std::byte> target(16 * kMiB), source(16 * kMiB);  // freed after the threads that copied
  Ranks ranks(2);
  ranks[0].resolver().use("staged");
  auto far_region = ranks[1].register_memory(target.data(), target.size());
  auto local = ranks[0].register_memory(source.data(), source.size());
  const auto remote = ranks.import(0, 1, *far_region);
  std::atomic<int> done{0};
  pw_status ended = PW_OK;
  std::string message;
  std::thread sender([&] {
    while (ended == PW_OK) {
      ended = ranks[0].put_blocks(*remote, range(0, target.size()), *local, range(0, source.size()), nullptr);
      ++done;
    }
    message = last_error_message();
  });
  while (done.load() < 3) std::this_thread::yield();
  ranks[1].close();  // pw_context_free does the same first
  sender.join();
  EXPECT_EQ(ended, PW_CLOSED);
  EXPECT_NE(message.find("rank 1 closed its context"), std::string::npos) << message;
}

TEST(ContextClose, EndsTheWaitsOfItsOwnThreads) {
  Ranks ranks(2);
  Signal signal(ranks[0], 1);
  std::atomic<bool> waiting{false};
  pw_status ended = PW_OK;
  std::string message;
  std::thread waiter([&] {
    waiting = true;
    ended = signal.wait(7, PW_FOREVER);
    message = last_error_message();
  });
  while (!waiting) std::this_thread::yield();
  ranks[0].close();
  waiter.join();
  EXPECT_EQ(ended, PW_CLOSED);
  EXPECT_NE(message.find("to reach 7; it is at 0"), std::string::npos) << message;
}

TEST(ContextClose, RefusesWhatFollows) {
  Ranks ranks(1);
  auto region = ranks[0].allocate({PW_HOST, 0}, 64);
  const auto remote = ranks.import(0, 0, *region);
  ranks[0].close();
  EXPECT_EQ(ranks[0].put_blocks(*remote, range(0, 8), *region, range(8, 8), nullptr), PW_CLOSED);
}

// The descriptor of the closed context's control segment may be any other file by now, which must not be
// written.
TEST(ContextClose, LeavesFilesThatGetItsDescriptorAlone) {
  Ranks ranks(2);
  auto region = ranks[1].allocate({PW_HOST, 0}, 4096);
  const auto key = ranks[1].key_of(*region);
  const int number = ranks[1].control().descriptor();
  region.reset();
  ranks.close(1);
  char name[] = "/tmp/peerway-test-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  ASSERT_EQ(ftruncate(file, 8 * kMiB), 0);
  ASSERT_GE(dup2(file, number), 0);
  EXPECT_EQ(status_after([&] { ranks[0].import(key); }), PW_STALE_KEY);
  close(number);
  close(file);
}

TEST(RegionClose, WaitsUntilTheServiceThreadHasLetGo) {
  Ranks ranks(2);
  ranks[0].resolver().use("staged");
  std::vector<std::byte> source(8 * kMiB);
  auto local = ranks[0].register_memory(source.data(), source.size());
  for (int round = 0; round < 20; ++round) {
    void* memory = mmap(nullptr, source.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto target = ranks[1].register_memory(memory, source.size());
    const auto remote = ranks.import(0, 1, *target);
    std::atomic<bool> started{false};
    pw_status ended = PW_OK;
    std::thread sender([&] {
      started = true;
      while (ended == PW_OK) {
        ended =
            ranks[0].put_blocks(*remote, range(0, source.size()), *local, range(0, source.size()), nullptr);
        if (ended == PW_OK) ended = ranks[0].flush(1, PW_FOREVER);
      }
    });
    while (!started) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(200 * round));
    target.reset();
    munmap(memory, source.size());  // a service thread that still copied would crash here
    sender.join();
    EXPECT_EQ(ended, PW_STALE_KEY);
  }
  EXPECT_EQ(ranks[0].flush(1, PW_FOREVER), PW_OK);  // told once
}

TEST(SignalClose, AStagedNotificationDoesNotReachItsSuccessor) {
  Ranks ranks(2);
  ranks[0].resolver().use("staged");
  auto target = ranks[1].allocate({PW_HOST, 0}, 4 * kMiB);
  auto local = ranks[0].allocate({PW_HOST, 0}, 4 * kMiB);
  const auto remote = ranks.import(0, 1, *target);
  auto signal = std::make_unique<Signal>(ranks[1], 0);
  const auto notified = ranks.import(0, *signal);
  const Notification notification{notified.get(), 5};
  ASSERT_EQ(ranks[0].put_blocks(*remote, range(0, 8), *local, range(0, 8), &notification), PW_OK);
  ASSERT_EQ(ranks[0].flush(1, PW_FOREVER), PW_OK);
  EXPECT_EQ(signal->value(), 5u);
  signal.reset();
  EXPECT_EQ(ranks[0].put_blocks(*remote, range(0, 8), *local, range(0, 8), &notification), PW_STALE_KEY);
  const Signal next(ranks[1], 0);
  EXPECT_EQ(next.value(), 0u);
}

TEST(Fork, AChildThatDropsItsCopiesChangesNothing) {
  Ranks ranks(1);
  auto region = ranks[0].allocate({PW_HOST, 0}, 4096);
  auto own = std::make_unique<int64_t>(0);
  auto other = ranks[0].register_memory(own.get(), sizeof *own);
  const auto remote = ranks.import(0, 0, *region);
  auto signal = std::make_unique<Signal>(ranks[0], 0);
  const pid_t child = fork();
  if (child == 0) {
    region.reset();
    other.reset();
    signal.reset();
    ranks[0].close();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(remote->current());
  EXPECT_EQ(ranks[0].put_blocks(*remote, range(0, 8), *region, range(8, 8), nullptr), PW_OK);
}

}  // namespace
}  // namespace pw
