// FIFOs from kernels to the proxy: threads of the CPU run the device code in the place of
// blocks.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "context_ranks.h"
#include "device/host/host.h"
#include "peerway/device/fifo.cuh"
#include "plan/kernel/fifo.h"

namespace pw {
namespace {

using peerway::device::Result;
using peerway::device::Thread;
using peerway::device::Word;
using testing::Ranks;

using testing::kSecond;
constexpr unsigned kRegion = 0, kSignal = 1;  // places in the list of remotes

// Rank 0 puts into the memory of rank 1, whatever path there is.
struct Ends {
  explicit Ends(const char* paths, uint64_t bytes = 4096, uint32_t entries = 8) : ranks(2) {
    ranks[0].resolver().use(paths);
    source = ranks[0].allocate({PW_HOST, 0}, bytes);
    target = ranks[1].allocate({PW_HOST, 0}, bytes);
    arrived = std::make_unique<Signal>(ranks[1], 0);
    to = ranks.import(0, 1, *target);
    far_arrived = ranks.import(0, *arrived);
    fifo = std::make_unique<Fifo>(ranks[0], host_device(), entries,
                                  FifoLists{{source}, {to.get(), far_arrived.get()}});
  }

  Ranks ranks;
  std::shared_ptr<Region> source, target;
  std::unique_ptr<Signal> arrived;
  std::shared_ptr<Remote> to, far_arrived;
  std::unique_ptr<Fifo> fifo;
};

pw_fifo_put put(uint64_t to, uint64_t from, uint64_t bytes, unsigned signal = PW_FIFO_NONE, uint64_t by = 1) {
  return {kRegion, 0, signal, to, from, bytes, by};
}

class FifoPaths : public ::testing::TestWithParam<const char*> {};

// More entries than the ring has, by several blocks at once: each its own words, again and again.
TEST_P(FifoPaths, WhatManyBlocksPostArrivesInOrder) {
  constexpr unsigned kBlocks = 4, kTurns = 25;
  Ends pair(GetParam());
  const pw_fifo_handle handle = pair.fifo->handle();
  auto* source = reinterpret_cast<Word*>(pair.source->address());
  const auto* target = reinterpret_cast<const Word*>(pair.target->address());
  std::vector<std::thread> blocks;
  std::atomic<int> failures{0};
  for (unsigned block = 0; block < kBlocks; ++block)
    blocks.emplace_back([&, block] {
      for (Word turn = 1; turn <= kTurns; ++turn) {
        source[block] = 1000 * block + turn;
        Word number = 0;
        const uint64_t at = block * sizeof(Word);
        failures += post(Thread{}, handle, put(at, at, sizeof(Word), kSignal, 2), &number) != Result::ok;
        failures += wait(Thread{}, handle, number) != Result::ok;
        failures += target[block] != 1000 * block + turn;
      }
    });
  for (auto& block : blocks) block.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(pair.arrived->wait(2 * kBlocks * kTurns, 20 * kSecond), PW_OK);
  EXPECT_EQ(pair.arrived->value(), 2 * kBlocks * kTurns);
  EXPECT_EQ(pair.fifo->status(), PW_OK) << last_error_message();
}

INSTANTIATE_TEST_SUITE_P(Paths, FifoPaths, ::testing::Values("staged", "peer", "route"));

// The kernel waits only once; the signals tell the target how far it is.
TEST(Fifo, AKernelRunsAheadOfTheProxy) {
  Ends pair("staged", 1 << 20, 64);
  const pw_fifo_handle handle = pair.fifo->handle();
  std::memset(pair.source->address(), 7, 1 << 20);
  Word number = 0;
  for (uint64_t i = 0; i < 64; ++i)
    ASSERT_EQ(post(Thread{}, handle, put(i << 14, i << 14, 1 << 14, kSignal), &number), Result::ok);
  ASSERT_EQ(wait(Thread{}, handle, number), Result::ok);
  EXPECT_EQ(number, 64u);
  EXPECT_EQ(pair.arrived->value(), 64u);
  EXPECT_EQ(std::memcmp(pair.target->address(), pair.source->address(), 1 << 20), 0);
}

struct Bad {
  pw_fifo_put entry;
  pw_status status;
  const char* reason;
};

class BadEntries : public ::testing::TestWithParam<Bad> {};

TEST_P(BadEntries, CancelTheFifoAndTouchNothing) {
  Ends pair("staged");
  const pw_fifo_handle handle = pair.fifo->handle();
  std::memset(pair.source->address(), 7, 4096);
  Word number = 0;
  ASSERT_EQ(post(Thread{}, handle, GetParam().entry, &number), Result::ok);
  EXPECT_EQ(wait(Thread{}, handle, number), Result::cancelled);
  EXPECT_EQ(pair.fifo->status(), GetParam().status) << last_error_message();
  EXPECT_NE(std::string(last_error_message()).find(GetParam().reason), std::string::npos)
      << last_error_message();
  const std::vector<std::byte> untouched(4096);
  EXPECT_EQ(std::memcmp(pair.target->address(), untouched.data(), 4096), 0);
  EXPECT_EQ(pair.arrived->value(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Entries, BadEntries,
    ::testing::Values(Bad{{0, 0, kSignal, 4090, 0, 8, 1}, PW_OUT_OF_RANGE, "4096 bytes"},
                      Bad{{0, 0, kSignal, 0, 4096, 1, 1}, PW_OUT_OF_RANGE, "local region"},
                      Bad{{0, 0, kSignal, ~0ull, 0, 8, 1}, PW_OUT_OF_RANGE, "remote region"},
                      Bad{{0, 0, kSignal, 0, 8, ~0ull, 1}, PW_OUT_OF_RANGE, "4096 bytes"},
                      Bad{{2, 0, kSignal, 0, 0, 8, 1}, PW_OUT_OF_RANGE, "remote 2"},
                      Bad{{0, 1, kSignal, 0, 0, 8, 1}, PW_OUT_OF_RANGE, "region 1"},
                      Bad{{1, 0, kSignal, 0, 0, 8, 1}, PW_INVALID_ARGUMENT, "remote 1"},
                      Bad{{0, 0, kRegion, 0, 0, 8, 1}, PW_INVALID_ARGUMENT, "remote 0"},
                      Bad{{0, 0, 99, 0, 0, 8, 1}, PW_OUT_OF_RANGE, "remote 99"},
                      Bad{{0, 0, kSignal, 0, 0, 8, 0}, PW_INVALID_ARGUMENT, "by 0"}));

TEST(Fifo, ClosingTheContextEndsTheWaitsOfKernels) {
  Ends pair("staged");
  const pw_fifo_handle handle = pair.fifo->handle();
  pair.ranks[0].close();
  EXPECT_EQ(wait(Thread{}, handle, 1), Result::cancelled);
  EXPECT_EQ(pair.fifo->status(), PW_CLOSED);
  EXPECT_NE(std::string(last_error_message()).find("FIFO"), std::string::npos) << last_error_message();
}

TEST(Fifo, AKernelThatWaitsTooLongCancelsIt) {
  Ends pair("staged");
  pw_fifo_handle handle = pair.fifo->handle();
  handle.guard.timeout_ns = kSecond / 100;
  EXPECT_EQ(wait(Thread{}, handle, 1), Result::timeout) << "nothing was posted";
  EXPECT_EQ(pair.fifo->status(), PW_TIMEOUT) << last_error_message();
}

TEST(Fifo, ItsSizeIsAPowerOfTwo) {
  Ranks ranks(1);
  for (const uint32_t entries : {0u, 1u, 3u, 131072u})
    EXPECT_THROW(Fifo(ranks[0], host_device(), entries, {}), Error) << entries;
}

}  // namespace
}  // namespace pw
