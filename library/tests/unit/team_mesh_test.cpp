// Connections between two ranks of this process, each served by hand: calls that are not answered at once,
// and leaving.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "team/mesh.h"

namespace pw {
namespace {

using wire::How;
using wire::Type;

constexpr uint64_t kLong = 20'000'000'000;

/// A rank of two: a mesh, and what it has heard.
struct Served {
  Served(int rank, Listening listening) : mesh(rank, 2, Secret{std::byte{7}}, std::move(listening)) {}

  void turn() {
    mesh.write();
    std::vector<pollfd> polled;
    mesh.add_to(polled);
    ::poll(polled.data(), polled.size(), mesh.due() == 0 ? 0 : 1);
    for (Mesh::Heard& each : mesh.serve(polled)) heard.push_back(std::move(each));
  }

  Mesh mesh;
  std::vector<Mesh::Heard> heard;
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

TEST(Mesh, ACallToWhereNobodyListensEnds) {
  Served rank(0, on_unix());
  EXPECT_TRUE(rank.mesh.link(1, "unix:@peerway-nobody", deadline_after(kLong)));
  EXPECT_TRUE(rank.mesh.send(1, Type::letter, bytes_of(1)));
  turn_until({&rank}, [&] { return !rank.heard.empty(); });
  EXPECT_EQ(rank.heard[0].what, Mesh::What::ended);
  EXPECT_EQ(rank.heard[0].how, How::ended);
  EXPECT_NE(rank.heard[0].why.find("@peerway-nobody"), std::string::npos) << rank.heard[0].why;
}

// The thread that serves the mesh does not wait for it.
TEST(Mesh, ACallThatIsNotAnsweredEndsAtItsDeadline) {
  const Listening silent = on_tcp();
  Served rank(0, on_unix());
  const uint64_t deadline = deadline_after(kLong / 100);
  EXPECT_TRUE(rank.mesh.link(1, silent.addresses, deadline));
  EXPECT_FALSE(rank.mesh.link(1, silent.addresses, deadline));
  EXPECT_TRUE(rank.mesh.send(1, Type::letter, bytes_of(1)));
  int turns = 0;
  turn_until({&rank}, [&] { return ++turns, !rank.heard.empty(); });
  EXPECT_GE(now_ns(), deadline);
  EXPECT_GT(turns, 3);
  EXPECT_EQ(rank.heard[0].how, How::ended);
}

// The door of the other rank is full, and it makes room.
TEST(Mesh, WhoIsPutOutOfADoorCallsAgain) {
  for (Listening (*listen)() : {on_unix, on_tcp}) {
    Listening listening = listen();
    const std::string addresses = listening.addresses;
    Served caller(0, on_unix());
    EXPECT_TRUE(caller.mesh.link(1, addresses, deadline_after(kLong)));
    EXPECT_TRUE(caller.mesh.send(1, Type::letter, bytes_of(9)));
    for (int times = 0; times < 3; ++times) {
      Descriptor guest;
      turn_until({&caller}, [&] {
        Origin source;
        return static_cast<bool>(guest = accept_from(listening.listeners[0], source));
      });
    }
    Served called(1, std::move(listening));
    turn_until({&caller, &called}, [&] { return called.heard.size() == 2; });
    for (const Mesh::Heard& each : called.heard) {
      EXPECT_EQ(each.message.payload.size(), each.what == Mesh::What::message ? 9u : 0u);
    }
    EXPECT_TRUE(caller.heard.empty());
  }
}

// What the leaver has not read must not cost the other what the leaver has written.
TEST(Mesh, WhoLeavesTakesNothingBack) {
  constexpr size_t kMoreThanATcpWindow = 160'000;
  for (Listening (*listen)() : {on_unix, on_tcp}) {
    Listening listening = listen();
    const std::string addresses = listening.addresses;
    Served stays(0, on_unix()), leaves(1, std::move(listening));
    stays.mesh.link(1, addresses, deadline_after(kLong));
    stays.mesh.send(1, Type::letter, bytes_of(1));
    turn_until({&stays, &leaves}, [&] { return leaves.heard.size() == 2; });
    stays.mesh.send(1, Type::letter, bytes_of(1000));
    leaves.mesh.send(0, Type::letter, bytes_of(kMoreThanATcpWindow));
    leaves.mesh.leave();
    turn_until({}, [&] { return leaves.mesh.write(), !leaves.mesh.unsent(); });  // and reads nothing
    leaves.mesh.finish();
    turn_until({&stays, &leaves}, [&] { return !leaves.mesh.linked(); });
    leaves.mesh.close();
    turn_until({&stays}, [&] { return stays.heard.size() == 2; });
    ASSERT_EQ(stays.heard.size(), 2u);
    EXPECT_EQ(stays.heard[0].message.payload.size(), kMoreThanATcpWindow);
    EXPECT_EQ(stays.heard[1].how, How::left);
  }
}

}  // namespace
}  // namespace pw
