// Objects of peerway.hpp that outlive their context and their team: defined, and nothing of theirs is gone.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "peerway/peerway.hpp"

namespace {

using peerway::Status;

peerway::Team alone() {
  return peerway::Team::create(0, 1, [](void*, size_t) {});
}

Status status_of(const auto& body) {
  try {
    body();
  } catch (const peerway::Error& error) {
    return error.status();
  }
  return Status::ok;
}

/// One of everything, over a context that ends as the test says.
struct Things {
  explicit Things(peerway::Context& ctx)
      : region(ctx.allocate(peerway::host, 4096)),
        remote(ctx.import(region.key())),
        signal(ctx.signal()),
        notified(ctx.import(signal.key())),
        stream(ctx.stream(peerway::host)),
        builder(ctx.plan()),
        plan(ctx.plan()
                 .put(remote.span(0, 8), region.span(8, 8), peerway::notify(notified))
                 .wait(signal, 2)
                 .prepare_alone()) {
    builder.put(remote.span(0, 8), region.span(8, 8));
  }

  void expect_closed() {
    std::memset(region.address(), 7, region.bytes());
    EXPECT_EQ(region.bytes(), 4096u);
    EXPECT_EQ(remote.bytes(), 4096u);
    EXPECT_EQ(remote.rank(), 0);
    EXPECT_EQ(signal.wait(100), Status::closed);
    EXPECT_EQ(plan.start(), Status::closed);
    EXPECT_EQ(plan.start(stream), Status::closed);
    EXPECT_EQ(plan.status(), Status::closed);
    EXPECT_EQ(status_of([&] { static_cast<void>(builder.prepare_alone()); }), Status::closed);
    bool called = false;
    EXPECT_EQ(stream.call([&] { called = true; }), Status::ok);
    EXPECT_EQ(stream.wait(), Status::ok);
    EXPECT_TRUE(called);
    EXPECT_FALSE(region.key().empty());
  }

  peerway::Region region;
  peerway::Remote remote;
  peerway::Signal signal;
  peerway::Remote notified;
  peerway::Stream stream;
  peerway::PlanBuilder builder;
  peerway::Plan plan;
};

TEST(Lifetime, WhatOutlivesItsContextAndTeamIsClosed) {
  std::optional<peerway::Team> team(alone());
  std::optional<peerway::Context> ctx(*team);
  Things things(*ctx);
  team.reset();
  EXPECT_EQ(ctx->flush(), Status::ok);  // the team lasts as long as its contexts
  ctx.reset();
  things.expect_closed();
}

TEST(Lifetime, AContextThatIsAssignedEndsTheOneBefore) {
  auto team = alone();
  peerway::Context ctx(team);
  Things things(ctx);
  ctx = peerway::Context(team);
  things.expect_closed();
  EXPECT_EQ(ctx.flush(), Status::ok);
}

TEST(Lifetime, AClosedContextMakesNothingMore) {
  auto team = alone();
  peerway::Context ctx(team);
  Things things(ctx);
  std::vector<double> array(8);
  ctx.close();
  for (const Status status : {
           status_of([&] { static_cast<void>(ctx.allocate(peerway::host, 8)); }),
           status_of([&] { static_cast<void>(ctx.register_memory(array.data(), 64)); }),
           status_of([&] { static_cast<void>(ctx.import(things.region.key())); }),
           status_of([&] { static_cast<void>(ctx.signal()); }),
           status_of([&] { static_cast<void>(ctx.stream(peerway::host)); }),
           status_of([&] { static_cast<void>(ctx.plan()); }),
       })
    EXPECT_EQ(status, Status::closed);
  things.expect_closed();
}

TEST(Lifetime, APlanKeepsWhatItUses) {
  auto team = alone();
  peerway::Context ctx(team);
  auto region = ctx.allocate(peerway::host, 16);
  auto remote = ctx.import(region.key());
  auto signal = ctx.signal();
  auto notified = ctx.import(signal.key());
  auto plan = ctx.plan()
                  .put(remote.span(0, 8), region.span(8, 8), peerway::notify(notified))
                  .wait(signal)
                  .prepare_alone();
  region.close();
  remote.close();
  signal.close();
  notified.close();
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(plan.start(), Status::ok);
    EXPECT_EQ(plan.finish(), Status::ok) << peerway::error_message();
  }
}

TEST(Lifetime, APlanThatIsUnderWayInAStreamMayBeClosed) {
  auto team = alone();
  peerway::Context ctx(team);
  auto stream = ctx.stream(peerway::host);
  auto region = ctx.allocate(peerway::host, 16);
  auto remote = ctx.import(region.key());
  auto signal = ctx.signal();
  auto plan = ctx.plan().put(remote.span(0, 8), region.span(8, 8)).wait(signal).prepare_alone();
  EXPECT_EQ(plan.run(stream), Status::ok);  // nobody notifies the signal
  plan.close();
  EXPECT_EQ(stream.wait(), Status::ok);
}

TEST(Lifetime, AStreamMayEndInItsOwnCall) {
  auto team = alone();
  peerway::Context ctx(team);
  auto stream = std::make_shared<peerway::Stream>(ctx.stream(peerway::host));
  EXPECT_EQ(stream->call([stream] {}), Status::ok);
  stream.reset();
}

}  // namespace
