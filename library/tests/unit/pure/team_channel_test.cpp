// A channel over a pair of sockets.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>

#include "team/channel.h"

namespace pw {
namespace {

TEST(Channel, LetsGoOfTheMemoryForWhatWasTaken) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  Channel from{Descriptor(ends[0])}, to{Descriptor(ends[1])};
  const Bytes large(size_t{1} << 20, std::byte{7});
  from.queue(wire::Type::contribute, large);
  from.queue(wire::Type::goodbye);
  const auto next = [&] {
    std::optional<Message> message;
    while (!(message = to.next(large.size()))) {
      EXPECT_TRUE(from.write());
      EXPECT_TRUE(to.read());
    }
    return *message;
  };
  EXPECT_EQ(next().payload, large);
  EXPECT_TRUE(from.write());
  EXPECT_TRUE(to.read());
  to.let_go();  // not of what is still to be taken
  EXPECT_EQ(next().type, wire::Type::goodbye);
  EXPECT_GT(to.held(), 0u);
  to.let_go();
  EXPECT_EQ(to.held(), 0u);
  EXPECT_FALSE(to.next(0));
}

}  // namespace
}  // namespace pw
