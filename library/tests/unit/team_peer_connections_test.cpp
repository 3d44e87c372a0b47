// Connections between two ranks of this process, each served by hand: calls that are not answered at once,
// and leaving.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "team/peer_connections.h"

namespace pw {
namespace {

using wire::How;
using wire::Type;

constexpr uint64_t kLong = 20'000'000'000;

/// A rank of two: a peers, and what it has events.
struct Served {
  Served(int rank, Listening listening) : peers(rank, 2, Secret{std::byte{7}}, std::move(listening)) {}

  void turn() {
    peers.write();
    std::vector<pollfd> polled;
    peers.add_to(polled);
    ::poll(polled.data(), polled.size(), peers.due() == 0 ? 0 : 1);
    for (PeerConnections::Event& each : peers.serve(polled)) events.push_back(std::move(each));
  }

  PeerConnections peers;
  std::vector<PeerConnections::Event> events;
};

void turn_until(std::vector<Served*> ranks, const std::function<bool()>& condition) {
  const uint64_t deadline = deadline_after(kLong);
  while (!condition()) {
    ASSERT_LT(now_ns(), deadline);
    for (Served* rank : ranks) rank->turn();
  }
}

SharedBytes bytes_of(size_t bytes) { return std::make_shared<const Bytes>(bytes, std::byte{5}); }

Listening on_unix() { return Listening::open(false); }

/// TCP alone.
Listening on_tcp() {
  Listening listening;
  std::vector<Address> reachable;
  listening.listeners.push_back(listen_on_any_port(reachable));
  listening.addresses = "tcp:127.0.0.1:" + reachable.at(0).port;
  return listening;
}

TEST(PeerConnections, ACallToWhereNobodyListensEnds) {
  Served rank(0, on_unix());
  EXPECT_TRUE(rank.peers.connect(1, "unix:@peerway-nobody", deadline_after(kLong)));
  EXPECT_TRUE(rank.peers.send(1, Type::exchange, bytes_of(1)));
  turn_until({&rank}, [&] { return !rank.events.empty(); });
  EXPECT_EQ(rank.events[0].kind, PeerConnections::EventKind::ended);
  EXPECT_EQ(rank.events[0].how, How::ended);
  EXPECT_NE(rank.events[0].why.find("@peerway-nobody"), std::string::npos) << rank.events[0].why;
}

// The thread that serves the peers does not wait for it.
TEST(PeerConnections, ACallThatIsNotAnsweredEndsAtItsDeadline) {
  const Listening silent = on_tcp();
  Served rank(0, on_unix());
  const uint64_t deadline = deadline_after(kLong / 100);
  EXPECT_TRUE(rank.peers.connect(1, silent.addresses, deadline));
  EXPECT_FALSE(rank.peers.connect(1, silent.addresses, deadline));
  EXPECT_TRUE(rank.peers.send(1, Type::exchange, bytes_of(1)));
  int turns = 0;
  turn_until({&rank}, [&] { return ++turns, !rank.events.empty(); });
  EXPECT_GE(now_ns(), deadline);
  EXPECT_GT(turns, 3);
  EXPECT_EQ(rank.events[0].how, How::ended);
}

// The door of the other rank is full, and it makes room.
TEST(PeerConnections, WhoIsPutOutOfADoorCallsAgain) {
  for (Listening (*listen)() : {on_unix, on_tcp}) {
    Listening listening = listen();
    const std::string addresses = listening.addresses;
    Served caller(0, on_unix());
    EXPECT_TRUE(caller.peers.connect(1, addresses, deadline_after(kLong)));
    EXPECT_TRUE(caller.peers.send(1, Type::exchange, bytes_of(9)));
    for (int times = 0; times < 3; ++times) {
      Descriptor pending;
      turn_until({&caller}, [&] {
        Origin source;
        return static_cast<bool>(pending = accept_from(listening.listeners[0], source));
      });
    }
    Served called(1, std::move(listening));
    turn_until({&caller, &called}, [&] { return called.events.size() == 2; });
    for (const PeerConnections::Event& each : called.events) {
      EXPECT_EQ(each.message.payload.size(), each.kind == PeerConnections::EventKind::message ? 9u : 0u);
    }
    EXPECT_TRUE(caller.events.empty());
  }
}

// Data that the leaving rank has not read must not make the other rank lose data that the leaving rank wrote.
TEST(PeerConnections, WhoLeavesTakesNothingBack) {
  constexpr size_t kMoreThanATcpWindow = 160'000;
  for (Listening (*listen)() : {on_unix, on_tcp}) {
    Listening listening = listen();
    const std::string addresses = listening.addresses;
    Served stays(0, on_unix()), leaves(1, std::move(listening));
    stays.peers.connect(1, addresses, deadline_after(kLong));
    stays.peers.send(1, Type::exchange, bytes_of(1));
    turn_until({&stays, &leaves}, [&] { return leaves.events.size() == 2; });
    stays.peers.send(1, Type::exchange, bytes_of(1000));
    leaves.peers.send(0, Type::exchange, bytes_of(kMoreThanATcpWindow));
    leaves.peers.leave();
    turn_until({}, [&] { return leaves.peers.write(), !leaves.peers.unsent(); });  // and reads nothing
    leaves.peers.finish();
    turn_until({&stays, &leaves}, [&] { return !leaves.peers.connected(); });
    leaves.peers.close();
    turn_until({&stays}, [&] { return stays.events.size() == 2; });
    ASSERT_EQ(stays.events.size(), 2u);
    EXPECT_EQ(stays.events[0].message.payload.size(), kMoreThanATcpWindow);
    EXPECT_EQ(stays.events[1].how, How::departed);
  }
}

}  // namespace
}  // namespace pw
