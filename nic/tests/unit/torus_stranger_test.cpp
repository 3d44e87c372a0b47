// Attacks by another user of the host on an endpoint. That user knows everything that anybody can know about
// a job, and more: its number, its torus file, the endpoint's whole address and the key of its memory; but
// not its secret.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/secret.h"
#include "built.h"
#include "peerway/nic.h"
#include "torus/memory.h"
#include "torus/packet.h"
#include "torus/peer.h"

namespace pw::torus {
namespace {

constexpr uint64_t kJob = 4711;
constexpr uid_t kNobody = 65534;

/// An endpoint on node 0 of a torus of two hosts, with memory that contains a text.
struct Attacked {
  Attacked() {
    std::ofstream(file)
        << R"({"extents": [2], "contexts": 4, "nodes": {"0": "127.0.0.1", "1": "127.0.0.2"}})";
    void* library = dlopen(kTorusPlugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    ops = reinterpret_cast<pw_nic_plugin_function>(dlsym(library, PW_NIC_PLUGIN_SYMBOL))();
    const std::string configuration = "file=" + file + ",node=0,counters=" + counters;
    const pw_nic_options options{sizeof options, kJob, configuration.c_str(),
                                 reinterpret_cast<const uint8_t*>(secret.data())};
    if (ops->open(&options, &nic) != PW_NIC_OK) throw std::runtime_error(ops->why(nullptr));
    pw_nic_address address;
    ops->address(nic, &address);
    std::memcpy(&place, address.bytes, sizeof place);
    const pw_nic_span span{sizeof span, text, sizeof text, PW_NIC_HOST, 0, -1, 0};
    pw_nic_key exported;
    if (ops->register_memory(nic, &span, &memory, &exported) != PW_NIC_OK)
      throw std::runtime_error("register");
    std::memcpy(&key, exported.bytes, sizeof key);
  }
  ~Attacked() {
    if (nic != nullptr) close();
    std::remove(file.c_str());
    std::remove(counters.c_str());
  }
  void close() {
    ops->deregister_memory(nic, memory);
    ops->close(std::exchange(nic, nullptr));
  }
  /// Closes it, and returns what it counted.
  std::string counted() {
    close();
    std::ifstream in(counters);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string file = ::testing::TempDir() + "stranger-" + std::to_string(getpid());
  const std::string counters = file + "-counters";
  const Secret secret = random_bytes<sizeof(Secret)>();
  const pw_nic_ops* ops = nullptr;
  pw_nic* nic = nullptr;
  pw_nic_memory* memory = nullptr;
  char text[64] = "what nobody else may read or change";
  EndpointAddress place{};
  Key key{};
};

/// The other user.
class Stranger {
 public:
  Stranger(const Attacked& of, const char* from) : place_(of.place), key_(of.key) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = inet_addr(from);
    socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0)
      throw std::runtime_error("bind");
    to_.sin_family = AF_INET;
    to_.sin_addr.s_addr = place_.ip;
    to_.sin_port = place_.port;
  }

  ~Stranger() { ::close(socket_); }

  /// Sends a get of the text, or a put over it, as endpoint 4 (of node 1) would send them.
  void send(Kind kind, const Secret& secret) { send(datagram_of(kind, secret)); }
  void send(const std::vector<std::byte>& datagram) const {
    sendto(socket_, datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr*>(&to_), sizeof to_);
  }
  std::vector<std::byte> datagram_of(Kind kind, const Secret& secret) {
    Header header{};
    header.kind = kind;
    header.from = 4;
    header.to = place_.number;
    header.from_session = ++session_;
    header.to_session = place_.session;
    header.sequence = header.turn = header.id = 1;
    header.slot = key_.slot;
    header.generation = key_.generation;
    if (kind == Kind::put) header.bytes = sizeof(Attacked::text);
    if (kind == Kind::get) header.total = sizeof(Attacked::text);
    std::vector<std::byte> datagram(sizeof header + header.bytes, std::byte{'X'});
    std::memcpy(datagram.data(), &header, sizeof header);
    seal(datagram, secret);
    return datagram;
  }
  /// Whether an answer arrives soon. What the endpoint does before it answers is then done.
  bool is_answered() const {
    pollfd there{socket_, POLLIN, 0};
    char bytes[kMostDatagram];
    return poll(&there, 1, 10) > 0 && recv(socket_, bytes, sizeof bytes, 0) > 0;
  }
  /// Counts the datagrams with bytes of the text that arrive within a moment.
  int answers() const {
    int copies = 0;
    for (pollfd there{socket_, POLLIN, 0}; poll(&there, 1, 300) > 0;) {
      char bytes[kMostDatagram];
      const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
      copies += memmem(bytes, static_cast<size_t>(std::max<ssize_t>(count, 0)), "nobody", 6) != nullptr;
    }
    return copies;
  }

 private:
  EndpointAddress place_;
  Key key_;
  sockaddr_in to_{};
  int socket_;
  uint64_t session_ = 0x5000;
};

/// Runs `attack` in a thread of another user if this is root, else of this user, and returns its result. The
/// kernel keeps users by thread. A forked child would inherit the locks that other threads hold, including
/// those of the sanitizers.
template <typename Attack>
int in_another_user(Attack&& attack) {
  int result = -1;
  std::thread([&] {
    const bool root = getuid() == 0;
    if (root && (syscall(SYS_setresgid, kNobody, kNobody, kNobody) != 0 ||
                 syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0))
      return;
    result = attack();
  }).join();
  return result;
}

Secret key_by(const Secret& secret) { return derive_secret(secret, "peerway torus datagrams"); }

/// Tries all keys that can be derived from what is known, and then `random` random ones.
int try_keys(Stranger& stranger, int random) {
  std::vector<Secret> keys{{}, key_by({}), derive_secret({}, std::to_string(kJob))};
  Secret job{};
  std::memcpy(job.data(), &kJob, sizeof kJob);
  keys.insert(keys.end(), {job, key_by(job)});
  for (int i = 0; i < random; ++i) keys.push_back(random_bytes<sizeof(Secret)>());
  for (size_t i = 0; i < 2 * keys.size(); ++i) {
    stranger.send(i % 2 == 0 ? Kind::get : Kind::put, keys[i / 2]);
    if (i % 64 == 63) usleep(1000);  // so that the socket has room
  }
  return stranger.answers();
}

TEST(TorusStranger, NeitherReadsNorWrites) {
  Attacked attacked;
  EXPECT_EQ(in_another_user([&] {
              Stranger stranger(attacked, "127.0.0.2");
              return try_keys(stranger, 5000);
            }),
            0);
  EXPECT_STREQ(attacked.text, "what nobody else may read or change");
  const std::string counted = attacked.counted();
  const size_t at = counted.find("\"rejected\":");
  EXPECT_GT(std::strtoul(counted.c_str() + at + 11, nullptr, 10), 1000u) << counted;  // they arrived
}

// The control: the same datagrams with the right key succeed.
TEST(TorusStranger, WouldWithTheSecret) {
  Attacked attacked;
  EXPECT_EQ(in_another_user([&] {
              Stranger stranger(attacked, "127.0.0.2");
              stranger.send(Kind::get, key_by(attacked.secret));
              const int answers = stranger.answers();
              stranger.send(Kind::put, key_by(attacked.secret));
              // An answer is sent again until it is acknowledged.
              return std::min(1, answers + stranger.answers());
            }),
            1);
  (void)attacked.counted();  // waits for its thread, which stores
  EXPECT_EQ(std::string(attacked.text, 4), "XXXX");
}

TEST(TorusStranger, NotEvenWithItFromAnAddressThatIsNotOfTheJob) {
  Attacked attacked;
  EXPECT_EQ(in_another_user([&] {
              Stranger stranger(attacked, "127.0.0.3");
              stranger.send(Kind::get, key_by(attacked.secret));
              const int answers = stranger.answers();
              stranger.send(Kind::put, key_by(attacked.secret));
              return answers + stranger.answers();
            }),
            0);
  EXPECT_STREQ(attacked.text, "what nobody else may read or change");
}

// Someone who can see the network has the datagrams of the peers, with their tags, but each counts only once.
TEST(TorusStranger, DoesNothingByRepeatingWhatAPeerSent) {
  Attacked attacked;
  char stored = 0;
  EXPECT_EQ(in_another_user([&] {
              Stranger stranger(attacked, "127.0.0.2");
              const auto put = stranger.datagram_of(Kind::put, key_by(attacked.secret));
              for (int tries = 0; tries < 1000; ++tries) {
                stranger.send(put);
                if (stranger.is_answered()) break;  // it is acknowledged once it is stored
              }
              stored = std::exchange(attacked.text[0], 'w');
              for (int again = 0; again < 2000; ++again) {
                stranger.send(put);
                if (again % 64 == 63) usleep(1000);
              }
              return stranger.answers();
            }),
            0);
  const std::string counted = attacked.counted();
  EXPECT_EQ(stored, 'X');
  EXPECT_EQ(std::string(attacked.text, 4), "wXXX");
  EXPECT_GT(std::strtoul(counted.c_str() + counted.find("\"repeated\":") + 11, nullptr, 10), 100u) << counted;
}

// A session number that depended on the clock could be found by trying.
TEST(TorusStranger, FindsNoSessionInAnother) {
  std::set<uint32_t> upper, lower;
  constexpr int kOpened = 8;
  for (int i = 0; i < kOpened; ++i) {
    const Attacked attacked;
    upper.insert(static_cast<uint32_t>(attacked.place.session >> 32));
    lower.insert(static_cast<uint32_t>(attacked.place.session));
  }
  EXPECT_EQ(upper.size(), size_t{kOpened});
  EXPECT_EQ(lower.size(), size_t{kOpened});
}

/// Returns the sockets of this process in the abstract namespace at which processes of a torus meet. Anybody
/// can find them like this; those of other processes of this machine are left alone.
std::vector<std::string> meeting_places() {
  std::set<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the folder's own descriptor
    own.insert(std::filesystem::read_symlink(entry, gone).string());
  }
  std::ifstream in("/proc/net/unix");
  std::vector<std::string> sockets;
  for (std::string line; std::getline(in, line);) {
    std::string inode, path;
    std::istringstream fields(line);
    for (int i = 0; i < 7; ++i) fields >> inode;
    fields >> path;
    if (path.starts_with("@peerway-torus-") && own.contains("socket:[" + inode + "]"))
      sockets.push_back(path.substr(1));
  }
  return sockets;
}

// It can connect to the socket at which the processes meet, but receives nothing.
TEST(TorusStranger, DoesNotGetTheMemoryThatTheProcessesShare) {
  if (getuid() != 0) GTEST_SKIP() << "there is no other user without root";
  Attacked attacked;
  const auto places = meeting_places();
  ASSERT_FALSE(places.empty());
  EXPECT_EQ(in_another_user([&] {
              int handed = 0;
              for (const std::string& name : places) {
                sockaddr_un to{};
                to.sun_family = AF_UNIX;
                std::memcpy(to.sun_path + 1, name.data(), name.size());
                const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
                if (connect(connection, reinterpret_cast<const sockaddr*>(&to),
                            static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) != 0)
                  throw std::runtime_error("connect");
                char byte;
                handed += recv(connection, &byte, 1, 0) > 0;
                ::close(connection);
              }
              return handed;
            }),
            0);
}

TEST(TorusStranger, FindsNoSocketWhereAllIsMemory) {
  const auto sockets = [] {
    int count = 0;
    for (int i = 0; i < 1024; ++i) {
      sockaddr_in at{};
      socklen_t size = sizeof at;
      if (getsockname(i, reinterpret_cast<sockaddr*>(&at), &size) == 0 && at.sin_family == AF_INET) ++count;
    }
    return count;
  };
  const int before = sockets();
  Attacked attacked;
  EXPECT_EQ(sockets(), before + 1);
  const pw_nic_options options{sizeof options, kJob, "", nullptr};
  pw_nic* alone = nullptr;
  ASSERT_EQ(attacked.ops->open(&options, &alone), PW_NIC_OK);
  pw_nic_address address;
  attacked.ops->address(alone, &address);
  pw_nic_peer* peer = nullptr;
  ASSERT_EQ(attacked.ops->connect(alone, &address, &peer), PW_NIC_OK);
  EXPECT_EQ(sockets(), before + 1);
  attacked.ops->disconnect(alone, peer);
  attacked.ops->close(alone);
}

TEST(TorusStranger, IsKeptOutByRefusingOtherHostsWithoutASecret) {
  Attacked attacked;
  const std::string configuration = "file=" + attacked.file + ",node=0";
  const pw_nic_options options{sizeof options, kJob, configuration.c_str(), nullptr};
  pw_nic* nic = nullptr;
  EXPECT_EQ(attacked.ops->open(&options, &nic), PW_NIC_INVALID);
  EXPECT_NE(std::string(attacked.ops->why(nullptr)).find("set PEERWAY_NIC_SECRET"), std::string::npos);
  // A caller built with an older header, whose struct ends earlier, has no secret.
  const pw_nic_options older{offsetof(pw_nic_options, secret), kJob, configuration.c_str(),
                             reinterpret_cast<const uint8_t*>(attacked.secret.data())};
  EXPECT_EQ(attacked.ops->open(&older, &nic), PW_NIC_INVALID);
}

}  // namespace
}  // namespace pw::torus
