// Collectives at the border: what the functions of the C++ interface give two ranks, which are threads here,
// and what pw_collective_create refuses.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "peerway/peerway.hpp"

namespace {

using namespace std::chrono_literals;
using peerway::Combine;
using peerway::Element;

/// Copies what rank 0 has to rank 1, which is another thread.
class TwoThreads {
 public:
  void broadcast(int rank, void* data, size_t bytes) {
    std::unique_lock lock(mutex_);
    auto* const text = static_cast<char*>(data);
    if (rank == 0) {
      text_.emplace(text, text + bytes);
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return text_.has_value(); });
      std::memcpy(data, text_->data(), bytes);
      text_.reset();
    }
    changed_.wait(lock, [&] { return !text_ || rank == 1; });
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::vector<char>> text_;
};

/// A rank with 64 elements of int32 for what it gives and 64 for what it gets.
class CollectiveRank {
 public:
  CollectiveRank(TwoThreads& threads, int rank)
      : team(peerway::Team::create(
            rank, 2, [&threads, rank](void* data, size_t bytes) { threads.broadcast(rank, data, bytes); })),
        ctx(team),
        from(ctx.allocate(peerway::host, 256)),
        to(ctx.allocate(peerway::host, 256)) {
    for (int n = 0; n < 64; ++n) {
      at(from, n) = 100 * (rank + 1) + n;
      at(to, n) = -1;
    }
  }

  static int32_t& at(const peerway::Region& region, int n) {
    return static_cast<int32_t*>(region.address())[n];
  }
  static auto elements(const peerway::Region& region, uint64_t first, uint64_t count) {
    return region.span(4 * first, 4 * count);
  }
  std::vector<int32_t> got(int count) const { return {&at(to, 0), &at(to, 0) + count}; }

  std::vector<int32_t> result_of(peerway::Plan plan, int count) {
    peerway::check(plan.start());
    peerway::check(plan.finish(60s));
    return got(count);
  }

  peerway::Team team;
  peerway::Context ctx;
  peerway::Region from, to;
};

void run_as_two(const std::function<void(CollectiveRank& rank, int number)>& body) {
  TwoThreads threads;
  std::vector<std::future<void>> running;
  for (int number = 0; number < 2; ++number)
    running.push_back(std::async(std::launch::async, [&, number] {
      CollectiveRank rank(threads, number);
      body(rank, number);
      rank.team.barrier();  // no rank leaves while the other needs it
    }));
  for (auto& rank : running) rank.get();
}

using Elements = std::vector<int32_t>;

TEST(CollectiveCpp, EachFunctionGivesWhatItIsDefinedTo) {
  run_as_two([](CollectiveRank& rank, int number) {
    constexpr auto kType = Element::int32;
    const auto part = [&](uint64_t first, uint64_t count) {
      return CollectiveRank::elements(rank.from, first, count);
    };
    const auto place = [&](uint64_t count) { return CollectiveRank::elements(rank.to, 0, count); };
    EXPECT_EQ(rank.result_of(rank.ctx.all_reduce(kType, place(3), part(0, 3), Combine::sum), 3),
              (Elements{300, 302, 304}));
    EXPECT_EQ(rank.result_of(rank.ctx.all_reduce(kType, place(2), part(1, 2), Combine::max), 2),
              (Elements{201, 202}));
    const uint64_t counts[] = {1, 2};
    EXPECT_EQ(rank.result_of(
                  rank.ctx.reduce_scatter(kType, place(counts[number]), part(0, 3), Combine::sum, counts),
                  1 + number),
              number == 0 ? (Elements{300}) : (Elements{302, 304}));
    EXPECT_EQ(rank.result_of(rank.ctx.all_gather(kType, place(3), part(0, counts[number]), counts), 3),
              (Elements{100, 200, 201}));
    EXPECT_EQ(rank.result_of(rank.ctx.all_gather(kType, place(4), part(5, 2)), 4),
              (Elements{105, 106, 205, 206}));
    const uint64_t sent[] = {2, 1}, received[] = {uint64_t{2} - number, uint64_t{2} - number};
    EXPECT_EQ(rank.result_of(rank.ctx.all_to_all(kType, place(4 - 2 * number), part(0, 3), sent, received),
                             4 - 2 * number),
              number == 0 ? (Elements{100, 101, 200, 201}) : (Elements{102, 202}));
    const int both_backwards[] = {1, 0};
    EXPECT_EQ(rank.result_of(rank.ctx.all_gather(kType, place(2), part(0, 1), {}, both_backwards), 2),
              (Elements{200, 100}));
    EXPECT_EQ(rank.result_of(rank.ctx.broadcast(kType, part(0, 4), 1), 0), Elements());
    EXPECT_EQ(CollectiveRank::at(rank.from, 3), 203);
    rank.result_of(rank.ctx.barrier(), 0);
  });
}

TEST(CollectiveCpp, SpansMustHaveTheElements) {
  auto team = peerway::Team::create(0, 1, [](void*, size_t) {});
  peerway::Context ctx(team);
  const peerway::Region region = ctx.allocate(peerway::host, 64);
  const auto span = [&](uint64_t bytes) { return region.span(0, bytes); };
  EXPECT_THROW(ctx.all_reduce(Element::int32, span(6), span(6), Combine::sum), peerway::Error);
  EXPECT_THROW(ctx.all_reduce(Element::int32, span(8), span(4), Combine::sum), peerway::Error);
  const uint64_t counts[] = {4};
  EXPECT_THROW(ctx.all_gather(Element::int32, span(8), region.span(32, 16), counts), peerway::Error);
  EXPECT_THROW(ctx.all_to_all(Element::int32, span(16), region.span(32, 16), counts, {}), peerway::Error);
}

class CollectiveApi : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pw_team_create(0, 1, nullptr, nullptr, &team_), PW_OK) << pw_error_message();
    ASSERT_EQ(pw_context_create(team_, &context_), PW_OK) << pw_error_message();
    ASSERT_EQ(pw_region_allocate(context_, {PW_HOST, 0}, 64, &region_), PW_OK) << pw_error_message();
    collective_.kind = PW_ALL_REDUCE;
    collective_.element = PW_FLOAT64;
    collective_.to = region_;
    collective_.from = region_;
    collective_.count = 8;
  }
  void TearDown() override {
    pw_plan_free(plan_);
    pw_region_free(region_);
    pw_context_free(context_);
    pw_team_free(team_);
  }
  void expect_refused(pw_status status, const char* part) {
    EXPECT_EQ(pw_collective_create(context_, &collective_, &plan_), status);
    EXPECT_NE(std::string(pw_error_message()).find(part), std::string::npos) << pw_error_message();
  }
  pw_team* team_ = nullptr;
  pw_context* context_ = nullptr;
  pw_region* region_ = nullptr;
  pw_plan* plan_ = nullptr;
  pw_collective collective_{};
};

TEST_F(CollectiveApi, ARankAloneKeepsWhatItHas) {
  auto* const values = static_cast<double*>(pw_region_address(region_));
  for (int n = 0; n < 8; ++n) values[n] = n;
  ASSERT_EQ(pw_collective_create(context_, &collective_, &plan_), PW_OK) << pw_error_message();
  ASSERT_EQ(pw_plan_start(plan_, nullptr), PW_OK);
  ASSERT_EQ(pw_plan_finish(plan_, PW_FOREVER), PW_OK);
  for (int n = 0; n < 8; ++n) EXPECT_EQ(values[n], n);
  const char* text = nullptr;
  ASSERT_EQ(pw_plan_describe(plan_, &text), PW_OK);
  EXPECT_STREQ(text, "all_reduce (sum) of 8 float64 on the host, among rank 0 alone");
}

TEST_F(CollectiveApi, MemoryThatIsMissingOrTooSmallIsRefused) {
  collective_.count = 9;
  expect_refused(PW_OUT_OF_RANGE, "`to` needs 72 bytes from offset 0 on, but its region has 64 bytes");
  collective_.count = 8;
  collective_.to = nullptr;
  expect_refused(PW_INVALID_ARGUMENT, "no region for `to`, but this rank needs 64 bytes there");
  EXPECT_EQ(pw_collective_create(context_, nullptr, &plan_), PW_INVALID_ARGUMENT);
}

TEST_F(CollectiveApi, MemoryThatOverlapsIsRefused) {
  collective_.count = 4;
  collective_.from_offset = 8;
  expect_refused(PW_INVALID_ARGUMENT, "`to` and `from` overlap; use memory that does not, or the same");
  collective_.kind = PW_ALL_GATHER;
  expect_refused(PW_INVALID_ARGUMENT, "for the smaller this rank's part of the larger");
  collective_.kind = PW_ALL_TO_ALL;
  collective_.from_offset = 0;
  expect_refused(PW_INVALID_ARGUMENT, "overlap; use memory that does not");
}

TEST_F(CollectiveApi, AGroupWithoutThisRankIsRefused) {
  const int ranks[] = {1};
  collective_.ranks = ranks;
  collective_.rank_count = 1;
  expect_refused(PW_INVALID_ARGUMENT, "a collective is to be made among 1 ranks without rank 0");
}

TEST_F(CollectiveApi, AStructOfAnotherVersionIsRefused) {
  collective_.size = 8;
  expect_refused(PW_INVALID_ARGUMENT, "pw_collective");
}

}  // namespace
