// The accept queue of the bootstrap server: who proves that he knows the secret is let in, whatever strangers
// do; a stranger's flood pushes out its own first.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "team/accept_queue.h"

namespace pw {
namespace {

using namespace wire;

constexpr Secret kSecret{std::byte{7}};

class Doors : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Address> reachable;
    std::vector<Descriptor> listeners;
    listeners.push_back(listen_on_any_port(reachable));
    port_ = reachable.front().port;
    accept_queue_.emplace(kSecret, std::move(listeners));
  }

  /// Connects from this address of the loopback network.
  Channel connect_from(const char* host) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from{}, to{};
    from.sin_family = to.sin_family = AF_INET;
    ::inet_pton(AF_INET, host, &from.sin_addr);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(port_)));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    return Channel(std::move(socket));
  }

  static void say_hello(Channel& channel, uint32_t rank, const Secret& secret, Nonce nonce = {}) {
    channel.seal_outgoing(hello_key(secret));
    channel.queue(Type::hello, pack(Hello{rank, 4, nonce}));
    channel.write();
  }

  /// Lets the queue work until nothing comes any more; the ranks that were let in.
  std::vector<uint32_t> serve() {
    std::vector<uint32_t> ranks;
    std::vector<pollfd> polled;
    while (accept_queue_->add_to(polled), ::poll(polled.data(), polled.size(), 100) > 0) {
      for (AcceptQueue::Authenticated& accepted : accept_queue_->serve(polled)) {
        ranks.push_back(accepted.hello.rank);
        authenticated_.push_back(std::move(accepted));
      }
      polled.clear();
    }
    return ranks;
  }

  std::string port_;
  std::optional<AcceptQueue> accept_queue_;
  std::vector<AcceptQueue::Authenticated> authenticated_;
};

using Ranks = std::vector<uint32_t>;

TEST_F(Doors, OnlyARightHelloIsLetInAndOnlyOnce) {
  Channel right = connect_from("127.0.0.1"), wrong = connect_from("127.0.0.1"),
          again = connect_from("127.0.0.1");
  say_hello(right, 1, kSecret, Nonce{std::byte{1}});
  EXPECT_EQ(serve(), Ranks{1});
  say_hello(wrong, 2, Secret{std::byte{8}}, Nonce{std::byte{2}});
  say_hello(again, 1, kSecret, Nonce{std::byte{1}});
  EXPECT_EQ(serve(), Ranks{});
  EXPECT_NE(accept_queue_->refusals().find("2 connections were refused"), std::string::npos)
      << accept_queue_->refusals();
  for (Channel* each : {&wrong, &again}) {
    each->read();
    const auto answer = each->next(kMaxHandshake);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->type, Type::refuse);
    EXPECT_FALSE(each->read());
  }
}

TEST_F(Doors, AFloodFromOneHostTakesNoPlaceFromAnother) {
  Channel slow = connect_from("127.0.0.2");
  serve();
  std::vector<Channel> flood;
  for (int i = 0; i < 400; ++i) flood.push_back(connect_from("127.0.0.1"));
  EXPECT_EQ(serve(), Ranks{});
  size_t open = 0;
  for (Channel& each : flood) open += each.read();
  EXPECT_GT(open, 0u);
  EXPECT_LT(open, 150u);  // the rest was put out
  say_hello(slow, 3, kSecret);
  EXPECT_EQ(serve(), Ranks{3});
}

TEST_F(Doors, WhoSaysTooMuchIsHungUpOnBeforeItIsRead) {
  Channel loud = connect_from("127.0.0.1");
  const std::vector<std::byte> much(1 << 20, std::byte{'x'});
  ASSERT_GT(::send(loud.descriptor(), much.data(), much.size(), MSG_NOSIGNAL | MSG_DONTWAIT), 0);
  serve();
  EXPECT_NE(accept_queue_->refusals().find("not a Peerway message"), std::string::npos)
      << accept_queue_->refusals();
}

TEST_F(Doors, ADescriptorThatIsMissingIsTakenFromAStranger) {
  Channel silent = connect_from("127.0.0.1"), rank = connect_from("127.0.0.1");
  say_hello(rank, 2, kSecret);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{std::min<rlim_t>(before.rlim_cur, 256), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<Descriptor> all;
  do all.emplace_back(::dup(silent.descriptor()));
  while (all.back());
  all.resize(all.size() - 2);  // one is left, for one of the two
  const Ranks let_in = serve();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(let_in, Ranks{2});
  EXPECT_NE(accept_queue_->refusals().find("refused"), std::string::npos);
}

}  // namespace
}  // namespace pw
