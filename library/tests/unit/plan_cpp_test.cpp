// The C++ interface of plans and streams (peerway/plan.hpp), by one rank that is its own peer.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "peerway/device/fifo.cuh"
#include "peerway/peerway.hpp"

namespace {

using namespace std::chrono_literals;
using peerway::Status;

class PlanCpp : public ::testing::Test {
 protected:
  char* bytes() const { return static_cast<char*>(region_.address()); }

  peerway::Team team_ = peerway::Team::create(0, 1, [](void*, size_t) {});
  peerway::Context context_{team_};
  peerway::Region region_ = context_.allocate(peerway::host, 64);
  peerway::Remote remote_ = context_.import(region_.key());
};

TEST_F(PlanCpp, APutNotifiesWhatAWaitAwaits) {
  auto arrived = context_.signal(0);
  const auto notified = context_.import(arrived.key());
  auto plan = context_.plan()
                  .put(remote_.span(32, 4), region_.span(0, 4), peerway::notify(notified))
                  .get(region_.block({2}, {4}, 2, 40), remote_.block({2}, {4}, 2, 4))
                  .wait(arrived)
                  .prepare_alone();
  for (int turn = 1; turn <= 3; ++turn) {
    for (int i = 0; i < 16; ++i) bytes()[i] = static_cast<char>(turn * 16 + i);
    ASSERT_EQ(plan.start(), Status::ok) << peerway::error_message();
    ASSERT_EQ(plan.finish(10s), Status::ok) << peerway::error_message();
    EXPECT_EQ(bytes()[35], turn * 16 + 3);
    EXPECT_EQ(bytes()[44], turn * 16 + 8);
    EXPECT_EQ(bytes()[46], 0);
  }
  EXPECT_EQ(plan.status(), Status::ok);
}

TEST_F(PlanCpp, ASendMeetsItsReceiveInTheOrderOfAStream) {
  auto plan = context_.plan(peerway::host)
                  .send(0, 7, region_.span(0, 8))
                  .receive(0, 7, region_.block({4}, {4}, 2, 16))
                  .prepare();
  auto stream = context_.stream(peerway::host);
  std::vector<int> seen;
  for (char turn = 1; turn <= 3; ++turn) {
    peerway::check(stream.call([this, turn] { bytes()[7] = turn; }));
    if (turn == 2) {
      peerway::check(plan.run(stream));
    } else {
      peerway::check(plan.start(stream));
      peerway::check(plan.finish(stream));
    }
    peerway::check(stream.call([this, &seen] { seen.push_back(bytes()[29]); }));
  }
  ASSERT_EQ(stream.wait(10s), Status::ok) << peerway::error_message();
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}

TEST_F(PlanCpp, WhatIsRefusedIsThrownWhileBuilding) {
  auto builder = context_.plan();
  EXPECT_THROW(builder.put(remote_.span(60, 8), region_.span(0, 8)), peerway::Error);
  EXPECT_THROW(builder.send(1, 0, region_.all()), peerway::Error);
  builder.send(0, 1, region_.span(0, 8));
  EXPECT_THROW(builder.send(0, 1, region_.span(8, 8)), peerway::Error);
}

TEST_F(PlanCpp, AStreamOfAnotherDeviceIsRefused) {
  auto plan = context_.plan().put(remote_.span(8, 8), region_.span(0, 8)).prepare_alone();
  int queue = 0;
  EXPECT_EQ(plan.start(peerway::cuda_stream(&queue)), Status::invalid_argument);
}

// A thread of the CPU in the place of a kernel.
TEST_F(PlanCpp, WhatAKernelPostsIsPut) {
  using peerway::device::Result;
  using peerway::device::Thread;
  auto arrived = context_.signal(0);
  const auto notified = context_.import(arrived.key());
  const auto fifo = context_.fifo({remote_, notified}, {region_}, peerway::host, 4);
  const pw_fifo_handle handle = fifo.handle();
  for (char turn = 1; turn <= 10; ++turn) {
    bytes()[3] = turn;
    const pw_fifo_put put{
        .to = 0, .from = 0, .signal = 1, .to_offset = 40, .from_offset = 0, .bytes = 8, .by = 1};
    unsigned long long number = 0;
    ASSERT_EQ(post(Thread{}, handle, put, &number), Result::ok);
    ASSERT_EQ(wait(Thread{}, handle, number), Result::ok);
    EXPECT_EQ(bytes()[43], turn);
  }
  EXPECT_EQ(arrived.value(), 10U);
  EXPECT_EQ(fifo.status(), Status::ok);
  EXPECT_THROW(context_.fifo({remote_}, {region_}, peerway::host, 3), peerway::Error) << "no power of two";
}

TEST_F(PlanCpp, LanesAreOfGpus) {
  const auto plan =
      context_.plan().send(0, 7, region_.span(0, 8)).receive(0, 7, region_.span(16, 8)).prepare();
  EXPECT_THROW(static_cast<void>(plan.send_lane(0, 7)), peerway::Error);
  EXPECT_THROW(static_cast<void>(plan.receive_lane(0, 8)), peerway::Error);
}

TEST_F(PlanCpp, AHaloIsAPlan) {
  auto* u = static_cast<double*>(region_.address());
  for (int i = 0; i < 8; ++i) u[i] = i;
  const auto array = peerway::Array(
      region_, 8, {{.extent = 4, .grid_dim = 0, .periodic = true, .shadow = {2, 2}, .width = {{1, 2}}}});
  auto halo = context_.halo({array}, peerway::Grid{1});
  peerway::check(halo.start());
  peerway::check(halo.finish(10s));
  const std::vector<double> values(u, u + 8);
  EXPECT_EQ(values, (std::vector<double>{0, 5, 2, 3, 4, 5, 2, 3}));
}

TEST(GridCpp, PutsTheLastDimensionFirst) {
  EXPECT_EQ((peerway::Grid{2, 3}.coordinates(4)), (std::vector<uint32_t>{1, 1}));
  EXPECT_THROW((peerway::Grid{1, 1, 1, 1, 1}), peerway::Error);
  EXPECT_EQ(peerway::block_of(10, 4, 3).count, 1U);
}

}  // namespace
