// Ranks in a ring over a plugin of peerway/nic.h: each puts messages to the next one, over one NIC after the
// other, in turns, so that what else the machine does meets all NICs alike.
//
//     ring PLUGIN NAMESPACE,... BYTES DEPTH TURNS MILLISECONDS CONFIGURATION...
//
// Rank r runs in network namespace r, and opens an endpoint for each configuration. Prints a line of JSON for
// each turn of each configuration: what a message took on the whole ring's average, and whether all bytes
// came.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "peerway/nic.h"

namespace {

constexpr int kMostRanks = 16, kMostNics = 8;
constexpr double kHang = 60;  // seconds

const pw_nic_ops* nic_ops;
int rank, ranks;

struct Meeting {  // what the ranks share beside the NICs
  std::atomic<int> arrived, turn, failed;
  uint8_t secret[PW_NIC_SECRET_BYTES];
  pw_nic_address address[kMostNics][kMostRanks];
  pw_nic_key key[kMostNics][kMostRanks];
  double rate[kMostRanks];  // messages a second
  bool right[kMostRanks];
};
Meeting* meeting;

double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void give_up(const std::string& expectation) {
  std::fprintf(stderr, "rank %d: %s\n", rank, expectation.c_str());
  meeting->failed = 1;
  _exit(1);
}

void require(bool holds, const std::string& expectation) {
  if (!holds) give_up(expectation);
}

// Two cores have to do for all ranks and their NICs: who waits sleeps.
template <typename Holds>
void await(const char* expectation, Holds&& holds) {
  for (const double limit = seconds() + kHang; !holds(); usleep(20)) {
    if (meeting->failed != 0) _exit(1);
    require(seconds() < limit, expectation);
  }
}

void meet() {
  const int turn = meeting->turn;
  if (++meeting->arrived == ranks) {
    meeting->arrived = 0;
    ++meeting->turn;
  }
  await("the others do not come", [&] { return meeting->turn != turn; });
}

struct Ended : pw_nic_done {
  bool ended = true;
  Ended() {
    call = [](pw_nic_done* self, pw_nic_status status) {
      require(status == PW_NIC_OK, "a get ended with status " + std::to_string(status));
      static_cast<Ended*>(self)->ended = true;
    };
  }
};

/// An endpoint, the messages that it sends, and those that it gets from the rank before.
class Nic {
 public:
  Nic(int index, const char* configuration, uint64_t bytes, uint64_t depth)
      : bytes_(bytes), memory_(2 * depth * bytes + 8), ends_(depth) {
    const pw_nic_options options{sizeof options, static_cast<uint64_t>(getppid()) * kMostNics + index,
                                 configuration, meeting->secret};
    if (nic_ops->open(&options, &nic_) != PW_NIC_OK) give_up(nic_ops->why(nullptr));
    const pw_nic_span span{sizeof span, memory_.data(), memory_.size(), PW_NIC_HOST, 0, -1, 0};
    require(nic_ops->register_memory(nic_, &span, &registered_, &meeting->key[index][rank]) == PW_NIC_OK,
            "no memory is registered");
    nic_ops->address(nic_, &meeting->address[index][rank]);
    meet();
    const int next = (rank + 1) % ranks;
    if (nic_ops->connect(nic_, &meeting->address[index][next], &peer_) != PW_NIC_OK)
      give_up(nic_ops->why(nic_));
    require(nic_ops->import_key(nic_, peer_, &meeting->key[index][next], &remote_) == PW_NIC_OK, "no key");
  }
  ~Nic() {
    meet();
    nic_ops->release_key(nic_, remote_);
    nic_ops->disconnect(nic_, peer_);
    nic_ops->deregister_memory(nic_, registered_);
    nic_ops->close(nic_);
  }
  Nic(const Nic&) = delete;

  /// Messages for `length` seconds, each proven by a get behind it. Returns how many came a second.
  double send_for(double length, uint64_t turn) {
    for (uint64_t at = 0; at < inbox(); ++at) memory_[at] = pattern(rank, turn, at);
    meet();
    const double begin = seconds();
    uint64_t count = 0;
    for (; seconds() < begin + length || count < ends_.size(); ++count) send(count % ends_.size());
    for (Ended& end : ends_) wait(end);
    const double took = seconds() - begin;
    meet();
    return static_cast<double>(count) / took;
  }

  [[nodiscard]] bool came(uint64_t turn) const {
    const int from = (rank + ranks - 1) % ranks;
    for (uint64_t at = 0; at < inbox(); ++at)
      if (memory_[inbox() + at] != pattern(from, turn, at)) return false;
    return true;
  }

 private:
  [[nodiscard]] uint64_t inbox() const { return ends_.size() * bytes_; }
  static std::byte pattern(int from, uint64_t turn, uint64_t at) {
    return static_cast<std::byte>((at * 131 + turn * 29 + static_cast<uint64_t>(from) * 71) >> 3);
  }
  void wait(const Ended& end) {
    await("a get does not end", [&] { return nic_ops->progress(nic_), end.ended; });
  }
  void send(uint64_t place) {
    Ended& end = ends_[place];
    wait(end);
    std::byte* data = memory_.data() + place * bytes_;
    require(nic_ops->put(nic_, remote_, inbox() + place * bytes_, data, registered_, bytes_, nullptr) ==
                PW_NIC_OK,
            "a put is refused");
    end.ended = false;
    require(nic_ops->get(nic_, remote_, 2 * inbox(), memory_.data() + 2 * inbox(), registered_, 8, &end) ==
                PW_NIC_OK,
            "a get is refused");
  }

  uint64_t bytes_;
  std::vector<std::byte> memory_;  // what is sent, what comes, a word
  std::vector<Ended> ends_;
  pw_nic* nic_ = nullptr;
  pw_nic_memory* registered_ = nullptr;
  pw_nic_peer* peer_ = nullptr;
  pw_nic_remote* remote_ = nullptr;
};

struct Arguments {
  const char* plugin;
  std::vector<std::string> spaces;
  uint64_t bytes, depth, turns;
  double length;
  std::vector<const char*> configurations;
};

Arguments read_arguments(int count, char** words) {
  Arguments read{};
  read.plugin = words[1];
  const std::string names = words[2];
  for (size_t at = 0; at < names.size();) {
    const size_t comma = std::min(names.find(',', at), names.size());
    read.spaces.push_back(names.substr(at, comma - at));
    at = comma + 1;
  }
  read.bytes = std::strtoull(words[3], nullptr, 10);
  read.depth = std::strtoull(words[4], nullptr, 10);
  read.turns = std::strtoull(words[5], nullptr, 10);
  read.length = std::strtod(words[6], nullptr) / 1e3;
  read.configurations.assign(words + 7, words + count);
  return read;
}

void enter(const std::string& name) {
  const std::string path = "/run/netns/" + name;
  const int space = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(space >= 0 && setns(space, CLONE_NEWNET) == 0, "cannot enter the network namespace " + path);
  close(space);
}

void report(size_t nic, uint64_t turn) {
  double rate = 0;
  bool right = true;
  for (int r = 0; r < ranks; ++r) rate += meeting->rate[r], right &= meeting->right[r];
  std::printf("{\"nic\": %zu, \"turn\": %llu, \"ns\": %.0f, \"right\": %s}\n", nic,
              static_cast<unsigned long long>(turn), 1e9 * ranks / rate, right ? "true" : "false");
  std::fflush(stdout);
}

int run_rank(const Arguments& given) {
  enter(given.spaces[static_cast<size_t>(rank)]);
  void* library = dlopen(given.plugin, RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, library == nullptr ? dlerror() : "");
  nic_ops = reinterpret_cast<pw_nic_plugin_function>(dlsym(library, PW_NIC_PLUGIN_SYMBOL))();
  std::vector<std::unique_ptr<Nic>> nics;
  for (const char* configuration : given.configurations)
    nics.push_back(
        std::make_unique<Nic>(static_cast<int>(nics.size()), configuration, given.bytes, given.depth));
  const size_t count = nics.size();
  for (uint64_t turn = 0; turn <= given.turns; ++turn)  // the first one warms up
    for (size_t i = 0; i < count; ++i) {
      const size_t at = turn % 2 == 0 ? i : count - 1 - i;
      meeting->rate[rank] = nics[at]->send_for(given.length, turn);
      meeting->right[rank] = nics[at]->came(turn);
      meet();
      if (rank == 0 && turn > 0) report(at, turn);
      meet();
    }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 8 || count > 7 + kMostNics) {
    std::fprintf(stderr, "ring PLUGIN NAMESPACE,... BYTES DEPTH TURNS MILLISECONDS CONFIGURATION...\n");
    return 2;
  }
  const Arguments given = read_arguments(count, words);
  ranks = static_cast<int>(given.spaces.size());
  if (ranks > kMostRanks || given.depth == 0) return 2;
  meeting = static_cast<Meeting*>(
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (getrandom(meeting->secret, sizeof meeting->secret, 0) != sizeof meeting->secret) return 2;
  const pid_t parent = getpid();
  for (rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    setenv("PEERWAY_RANK", std::to_string(rank).c_str(), 1);
    std::exit(run_rank(given));
  }
  int wrong = 0;
  for (int status = 0; wait(&status) > 0;) wrong |= status;
  return wrong == 0 ? 0 : 1;
}
