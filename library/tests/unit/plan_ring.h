// A ring of ranks, each with a plan that sends to the next and receives as much from the one before, and what
// is tried with it: data that changes each epoch, from the host and on streams.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "context_ranks.h"
#include "device/host/host.h"
#include "plan/plan.h"

namespace pw::testing {

/// Every byte depends on the rank, the epoch and the place.
inline void fill(std::byte* bytes, uint64_t count, int rank, uint64_t epoch) {
  std::mt19937_64 random(static_cast<uint64_t>(rank) << 32 | epoch);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random());
}

inline bool holds(const std::byte* bytes, uint64_t count, int rank, uint64_t epoch) {
  std::vector<std::byte> expected(count);
  fill(expected.data(), count, rank, epoch);
  return std::memcmp(bytes, expected.data(), count) == 0;
}

struct RingOf {
  int ranks = 2;
  uint64_t bytes = 64;
  const char* paths = "";                 ///< the only ones to be used; "": all
  const char* paths_of_rank_1 = nullptr;  ///< where it has others
  bool mappable = true;                   ///< whether the memory is such that peers can map it
};

class Ring {
 public:
  explicit Ring(const RingOf& of)
      : ranks(of.ranks), bytes_(of.bytes), members_(static_cast<size_t>(of.ranks)) {
    if (of.paths[0] != 0)
      for (int rank = 0; rank < of.ranks; ++rank) ranks[rank].resolver().use(of.paths);
    if (of.paths_of_rank_1 != nullptr) ranks[1].resolver().use(of.paths_of_rank_1);
    ranks.each([&](int rank) {
      Member& mine = member(rank);
      if (!of.mappable) mine.memory.resize(2 * bytes_);
      mine.region = of.mappable ? ranks[rank].allocate({PW_HOST, 0}, 2 * bytes_)
                                : ranks[rank].register_memory(mine.memory.data(), mine.memory.size());
      mine.plan = std::make_unique<Plan>(ranks[rank], host_device());
      mine.plan->operations().send((rank + 1) % of.ranks, 7, mine.region, range(0, bytes_));
      mine.plan->operations().receive(before(rank), 7, mine.region, range(bytes_, bytes_));
      mine.plan->prepare(false);
    });
  }

  Plan& plan(int rank) { return *member(rank).plan; }
  void free_plan(int rank) { member(rank).plan.reset(); }
  const std::shared_ptr<Region>& region(int rank) { return member(rank).region; }
  void write(int rank, uint64_t epoch) { fill(region(rank)->address(), bytes_, rank, epoch); }
  bool arrived(int rank, uint64_t epoch) {
    return holds(region(rank)->address() + bytes_, bytes_, before(rank), epoch);
  }

  /// Every rank starts and finishes from the host, and looks after `before_look`.
  template <typename BeforeLook>
  void turn(uint64_t epochs, BeforeLook before_look) {
    ranks.each([&](int rank) {
      for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        write(rank, epoch);
        ASSERT_EQ(plan(rank).start(), PW_OK) << last_error_message();
        ASSERT_EQ(plan(rank).finish(20 * kSecond), PW_OK) << last_error_message();
        before_look(rank);
        ASSERT_TRUE(arrived(rank, epoch)) << "rank " << rank << ", epoch " << epoch;
      }
    });
  }
  void turn(uint64_t epochs) {
    turn(epochs, [](int) {});
  }

  /// The same on streams: the host runs ahead by all epochs; to write and to look are calls in the stream.
  void turn_on_streams(uint64_t epochs) {
    ranks.each([&](int rank) { turn_on_stream(rank, epochs); });
  }

  /// Rank 0 waits in a stream for rank 1, which does not start: the plan ends in time and names it.
  void expect_timeout(uint64_t timeout_ns) {
    plan(0).set_timeout(timeout_ns);
    void* stream = host_device().make_stream();
    ASSERT_EQ(plan(0).enqueue(stream, PlanPart::both), PW_OK);
    ASSERT_EQ(plan(0).enqueue(stream, PlanPart::both), PW_OK) << "the host runs ahead";
    host_device().free_stream(stream);
    EXPECT_EQ(plan(0).status(), PW_TIMEOUT);
    EXPECT_NE(std::string(last_error_message()).find("rank 1"), std::string::npos) << last_error_message();
  }

  /// The same, but rank 0 closes its context.
  void expect_closed() {
    void* stream = host_device().make_stream();
    ASSERT_EQ(plan(0).enqueue(stream, PlanPart::both), PW_OK);
    ranks[0].close();
    host_device().free_stream(stream);
    EXPECT_EQ(plan(0).status(), PW_CLOSED);
  }

  Ranks ranks;

 private:
  struct Member {
    std::vector<std::byte> memory;
    std::shared_ptr<Region> region;
    std::unique_ptr<Plan> plan;
  };
  struct Call {
    Ring* ring;
    int rank;
    uint64_t epoch;
    bool good;
  };

  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }
  [[nodiscard]] int before(int rank) const {
    const int size = static_cast<int>(members_.size());
    return (rank + size - 1) % size;
  }

  void turn_on_stream(int rank, uint64_t epochs) {
    const auto write_then = [](void* user) {
      auto& call = *static_cast<Call*>(user);
      call.ring->write(call.rank, call.epoch);
    };
    const auto look = [](void* user) {
      auto& call = *static_cast<Call*>(user);
      call.good = call.ring->arrived(call.rank, call.epoch);
    };
    void* stream = host_device().make_stream();
    std::vector<Call> calls(epochs);
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
      Call& call = calls[epoch - 1] = {this, rank, epoch, false};
      host_device().call(stream, write_then, &call);
      const bool in_one = epoch % 3 == 0;
      ASSERT_EQ(plan(rank).enqueue(stream, in_one ? PlanPart::both : PlanPart::start), PW_OK);
      if (!in_one) {
        ASSERT_EQ(plan(rank).enqueue(stream, PlanPart::finish), PW_OK);
      }
      host_device().call(stream, look, &call);
    }
    host_device().free_stream(stream);
    EXPECT_EQ(plan(rank).status(), PW_OK) << last_error_message();
    for (const Call& call : calls) EXPECT_TRUE(call.good) << "rank " << rank << ", epoch " << call.epoch;
  }

  uint64_t bytes_;
  std::vector<Member> members_;
};

}  // namespace pw::testing
