// Requests: operations, flushes and plans that are tested and waited for, alone and with others, over each
// path.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "context/request.h"
#include "context_ranks.h"
#include "peerway/peerway.hpp"

namespace {

using namespace std::chrono_literals;
using peerway::Request;
using peerway::Status;
using pw::testing::Ranks;

constexpr uint64_t kRegionBytes = 1 << 20;

/// Rank 0 of one, with a region, a remote of it, and a signal.
class RequestTest : public ::testing::Test {
 protected:
  char* bytes() { return static_cast<char*>(region_.address()); }

  peerway::Team team_ = peerway::Team::create(0, 1, [](void*, size_t) {});
  peerway::Context context_{team_};
  peerway::Region region_ = context_.allocate(peerway::host, 2 * kRegionBytes);
  peerway::Remote remote_ = context_.import(region_.key());
  peerway::Signal signal_ = context_.signal();
  peerway::Remote notified_ = context_.import(signal_.key());
};

class RequestOverPath : public RequestTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RequestOverPath, APutAndItsNotificationAreCompleteWithIt) {
  context_.use(GetParam());
  std::memset(bytes(), 7, kRegionBytes);
  auto request = context_.start_put(remote_.span(kRegionBytes, kRegionBytes), region_.span(0, kRegionBytes),
                                    peerway::notify(notified_, 3));
  EXPECT_EQ(request.wait(20s), Status::ok) << peerway::error_message();
  EXPECT_TRUE(request.complete());
  EXPECT_EQ(signal_.value(), 3U);
  EXPECT_EQ(std::memcmp(bytes(), bytes() + kRegionBytes, kRegionBytes), 0);
}

TEST_P(RequestOverPath, AGetANotificationAndAFlush) {
  context_.use(GetParam());
  bytes()[5] = 9;
  std::vector<Request> requests;
  requests.push_back(context_.start_get(region_.span(kRegionBytes, 8), remote_.span(0, 8)));
  requests.push_back(context_.start_notify(peerway::notify(notified_)));
  requests.push_back(context_.start_flush(0));
  requests.push_back(context_.start_flush());
  EXPECT_EQ(wait_all(requests, 20s), Status::ok) << peerway::error_message();
  EXPECT_EQ(bytes()[kRegionBytes + 5], 9);
  EXPECT_EQ(signal_.value(), 1U);
  for (auto& request : requests) {
    EXPECT_TRUE(request.complete());
    EXPECT_EQ(request.wait(0s), Status::ok);
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, RequestOverPath, ::testing::Values("peer", "staged", "route"));

TEST_F(RequestTest, WhatIsRefusedHasNoRequest) {
  EXPECT_THROW(context_.start_put(remote_.span(2 * kRegionBytes, 8), region_.span(0, 8)), peerway::Error);
  EXPECT_THROW(context_.start_flush(7), peerway::Error);
  EXPECT_THROW(context_.start_flush(-2), peerway::Error);
}

TEST_F(RequestTest, OfAPlanItStandsForTheFinish) {
  auto plan = context_.plan().wait(signal_).prepare_alone();
  auto request = plan.start_request();
  EXPECT_FALSE(request.complete());
  EXPECT_EQ(request.wait(1ms), Status::timeout);
  EXPECT_EQ(plan.start(), Status::invalid_argument) << "it is not finished";
  peerway::check(context_.notify(peerway::notify(notified_)));
  EXPECT_EQ(request.wait(20s), Status::ok) << peerway::error_message();
  EXPECT_EQ(plan.finish(), Status::invalid_argument) << "the request has finished it";

  auto second = plan.start_request();
  peerway::check(context_.notify(peerway::notify(notified_)));
  EXPECT_EQ(plan.finish(20s), Status::ok);
  auto third = plan.start_request();
  EXPECT_EQ(second.wait(0s), Status::ok) << "its start was finished, though a later one is under way";
  EXPECT_FALSE(third.complete());
  plan.close();
  EXPECT_EQ(third.wait(20s), Status::closed);
}

TEST_F(RequestTest, AnyAndAllOfSeveral) {
  auto plan = context_.plan().wait(signal_).prepare_alone();
  std::vector<Request> requests;
  requests.push_back(plan.start_request());
  size_t index = 7;
  EXPECT_EQ(wait_any(requests, 1ms, index), Status::timeout);
  EXPECT_EQ(index, 1U);
  EXPECT_EQ(wait_all(requests, 1ms), Status::timeout);
  EXPECT_NE(peerway::error_message().find("1 of 1 are not complete"), std::string::npos)
      << peerway::error_message();
  requests.push_back(context_.start_put(remote_.span(8, 8), region_.span(0, 8)));
  EXPECT_EQ(wait_any(requests, 20s, index), Status::ok);
  EXPECT_EQ(index, 1U);
  peerway::check(context_.notify(peerway::notify(notified_)));
  EXPECT_EQ(wait_all(requests, 20s), Status::ok);
  EXPECT_EQ(wait_any(requests, 20s, index), Status::ok);
  EXPECT_EQ(index, 0U) << "the first that is complete";
}

TEST_F(RequestTest, ListsThatCannotBeWaitedFor) {
  std::vector<Request> none;
  size_t index = 0;
  EXPECT_EQ(wait_all(none), Status::ok);
  EXPECT_EQ(wait_any(none, peerway::forever, index), Status::invalid_argument);
  auto other_team = peerway::Team::create(0, 1, [](void*, size_t) {});
  peerway::Context other(other_team);
  std::vector<Request> two;
  two.push_back(context_.start_flush());
  two.push_back(other.start_flush());
  EXPECT_EQ(wait_all(two), Status::invalid_argument);
  EXPECT_NE(peerway::error_message().find("two contexts"), std::string::npos);
  pw_request* null = nullptr;
  EXPECT_EQ(pw_request_wait_any(&null, 1, 0, &index), PW_INVALID_ARGUMENT);
}

TEST_F(RequestTest, OutlivesItsContext) {
  auto plan = context_.plan().wait(signal_).prepare_alone();
  auto waits = plan.start_request();
  auto done = context_.start_put(remote_.span(8, 8), region_.span(0, 8));
  context_.close();
  EXPECT_EQ(waits.wait(20s), Status::closed);
  EXPECT_TRUE(done.complete());
}

/// Fails once, as a path does that tells its failures.
struct Failing final : pw::Marker {
  pw::Mark mark(int) override { return 1; }
  bool reached(int, pw::Mark) override { return over; }
  pw_status outcome(int, pw::Mark) override {
    const bool first = !reported;
    reported = true;
    return first ? pw::fail(PW_SYSTEM, "it failed") : PW_OK;
  }
  bool over = false, reported = false;
};

TEST(RequestFailure, IsToldToAllThatWereOpenAndToTheNextFlush) {
  Ranks ranks(2);
  Failing path;
  pw::Context& context = ranks[0];
  pw::MarksRequest first(context, 1), second(context, 1), elsewhere(context, 0), all(context, PW_ANY_RANK);
  for (auto* request : {&first, &second, &all}) request->marks().add(path, 1);
  pw_status ended = PW_OK;
  EXPECT_FALSE(first.complete(ended));
  path.over = true;
  for (auto* request : {&first, &second, &all}) {
    ended = PW_OK;
    ASSERT_TRUE(request->complete(ended));
    EXPECT_EQ(ended, PW_SYSTEM);
    EXPECT_STREQ(pw_error_message(), "peerway: it failed");
  }
  ASSERT_TRUE(elsewhere.complete(ended));
  EXPECT_EQ(ended, PW_OK) << "nothing failed towards that rank";
  EXPECT_EQ(context.flush(0, 0), PW_OK);
  EXPECT_EQ(context.flush(1, 0), PW_SYSTEM);
  EXPECT_EQ(context.flush(1, 0), PW_OK) << "told once";
  pw::MarksRequest later(context, 1);
  ASSERT_TRUE(later.complete(ended));
  EXPECT_EQ(ended, PW_OK) << "it failed before";
}

}  // namespace
