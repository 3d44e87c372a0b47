// Several processes that use a plugin of peerway/nic.h and check every byte: the tests of the torus NIC.
//
//     nic_ranks PLUGIN TEST RANKS CONFIGURATION [SEED] [NAMESPACE,...]
//
// Rank r runs in network namespace number r modulo their number. Prints one line of JSON; exits with 1 if
// anything was wrong.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "peerway/nic.h"

namespace {

constexpr int kMostRanks = 16;
constexpr uint64_t kMemory = 8 << 20;  // peers read the lower half and write to the upper half
constexpr uint64_t kInbox = kMemory / 2, kWords = kMemory - 4096;
constexpr double kHang = 20;  // seconds

const pw_nic_ops* nic_ops;
int rank, ranks;
uint64_t seed = 1;

struct Meeting {  // what the ranks share besides the NIC
  std::atomic<int> arrived, turn;
  std::atomic<int> failed, living;
  pw_nic_address address[kMostRanks];
  pw_nic_key key[kMostRanks];
  char text[256];
  uint8_t secret[PW_NIC_SECRET_BYTES];
};
Meeting* meeting;

double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "rank %d, seed %llu: %s\n", rank, static_cast<unsigned long long>(seed), what.c_str());
  meeting->failed = 1;
  _exit(1);
}

uint64_t rounds_or(uint64_t otherwise) {
  const char* text = std::getenv("ROUNDS");
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void require(bool holds, const std::string& what) {
  if (!holds) give_up(what);
}

/// Limits a wait, ends it if another rank has failed, and yields the CPU meanwhile.
struct Patience {
  double limit = seconds() + kHang;
  int yields = 64;  ///< number of yields before it sleeps, so that long waits do not take time from the ranks
                    ///< of other tests
  void check(const char* what) const {
    if (meeting->failed != 0) _exit(1);
    require(seconds() < limit, what);
  }
  void pause() {
    if (yields-- > 0)
      sched_yield();
    else
      usleep(50);
  }
};

void meet() {
  const int turn = meeting->turn;
  if (++meeting->arrived == ranks) {
    meeting->arrived = 0;
    ++meeting->turn;
  }
  Patience patience{seconds() + 2 * kHang};
  while (meeting->turn == turn) {
    patience.check("the others do not come");
    patience.pause();
  }
}

struct Done : pw_nic_done {
  bool ended = false;
  pw_nic_status status = PW_NIC_OK;
  int turn = 0;
  Done() {
    call = [](pw_nic_done* self, pw_nic_status s) {
      auto* done = static_cast<Done*>(self);
      static int turns = 0;
      require(!done->ended, "an operation ended twice");
      done->ended = true;
      done->status = s;
      done->turn = ++turns;
    };
  }
  Done(const Done&) = delete;
};
using Dones = std::unique_ptr<Done[]>;

struct Nic {
  pw_nic* nic = nullptr;
  pw_nic_info info{};
  std::byte* bytes = nullptr;
  pw_nic_memory* memory = nullptr;
  pw_nic_peer* peer[kMostRanks] = {};
  pw_nic_remote* remote[kMostRanks] = {};

  explicit Nic(const char* configuration) {
    const pw_nic_options options{sizeof options, static_cast<uint64_t>(getppid()), configuration,
                                 meeting->secret};
    if (nic_ops->open(&options, &nic) != PW_NIC_OK) give_up(nic_ops->why(nullptr));
    info.size = sizeof info;
    nic_ops->query(nic, &info);
    const int file = memfd_create("memory", MFD_CLOEXEC);
    require(ftruncate(file, kMemory) == 0, "memfd");
    const bool shared = seed % 2 == 1;  // otherwise the NIC is not told which file is behind the memory
    bytes = static_cast<std::byte*>(mmap(nullptr, kMemory, PROT_READ | PROT_WRITE,
                                         shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
                                         shared ? file : -1, 0));
    const pw_nic_span span{sizeof span, bytes, kMemory, PW_NIC_HOST, 0, shared ? file : -1, 0};
    require(nic_ops->register_memory(nic, &span, &memory, &meeting->key[rank]) == PW_NIC_OK, "register");
    nic_ops->address(nic, &meeting->address[rank]);
    meet();
    for (int r = 0; r < ranks; ++r) {
      if (nic_ops->connect(nic, &meeting->address[r], &peer[r]) != PW_NIC_OK) give_up(nic_ops->why(nic));
      require(nic_ops->import_key(nic, peer[r], &meeting->key[r], &remote[r]) == PW_NIC_OK, "import");
    }
    meet();
  }
  ~Nic() {
    meet();
    for (int r = 0; r < ranks; ++r) {
      nic_ops->release_key(nic, remote[r]);
      nic_ops->disconnect(nic, peer[r]);
    }
    nic_ops->deregister_memory(nic, memory);
    nic_ops->close(nic);
  }
  [[nodiscard]] bool guarantees(uint32_t what) const { return (info.guarantees & what) != 0; }

  pw_nic_status put(int r, uint64_t offset, const void* data, uint64_t count, Done* done,
                    bool copied = false) {
    return busy_free(
        [&] { return nic_ops->put(nic, remote[r], offset, data, copied ? nullptr : memory, count, done); });
  }
  pw_nic_status get(int r, uint64_t offset, void* data, uint64_t count, Done* done) {
    return busy_free([&] { return nic_ops->get(nic, remote[r], offset, data, memory, count, done); });
  }
  void end(const Done& done, const char* what) {
    Patience patience;
    while (!done.ended) {
      patience.check(what);
      if (nic_ops->progress(nic) == 0) patience.pause();
    }
  }

 private:
  template <typename Post>
  pw_nic_status busy_free(Post&& post) {
    const Patience patience;
    for (;;) {
      const pw_nic_status status = post();
      if (status != PW_NIC_BUSY) return status;
      patience.check("the NIC stays busy");
      nic_ops->progress(nic);
    }
  }
};

std::byte pattern(int from, uint64_t round, uint64_t at) {
  return static_cast<std::byte>((at * 131 + round * 29 + static_cast<uint64_t>(from) * 71 + seed * 7) >> 2);
}

void fill(std::byte* to, uint64_t count, int from, uint64_t round, uint64_t at) {
  for (uint64_t i = 0; i < count; ++i) to[i] = pattern(from, round, at + i);
}

void check(const std::byte* bytes, uint64_t count, int from, uint64_t round, uint64_t at, const char* what) {
  for (uint64_t i = 0; i < count; ++i)
    if (bytes[i] != pattern(from, round, at + i))
      give_up(std::string(what) + " of rank " + std::to_string(from) + ", round " + std::to_string(round) +
              ": byte " + std::to_string(at + i) + " is wrong");
}

uint64_t word_at(const Nic& nic, uint64_t offset) {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(nic.bytes + offset)).load(std::memory_order_acquire);
}

struct Piece {
  uint64_t at, bytes;
};

// Rank r writes to its part of the inbox of each other, in pieces of random sizes.
constexpr uint64_t kPart = 64 << 10;

std::vector<Piece> pieces_of(int from, uint64_t round) {
  std::mt19937_64 random(seed * 1000 + round * 50 + static_cast<uint64_t>(from));
  std::vector<Piece> pieces;
  for (uint64_t at = 0; at < kPart && pieces.size() < 24;) {
    const uint64_t longest = random() % 4 == 0 ? 20000 : 200;
    const uint64_t bytes = std::min<uint64_t>(random() % longest + 1, kPart - at);
    pieces.push_back({at, bytes});
    at += bytes;
  }
  return pieces;
}

void check_inbox(const Nic& nic, int from, uint64_t round) {
  const std::byte* part = nic.bytes + kInbox + static_cast<uint64_t>(from) * kPart;
  for (const Piece& piece : pieces_of(from, round))
    check(part + piece.at, piece.bytes, from, round, piece.at, "put");
}

void prove_arrival(Nic& nic, int to, const std::vector<Piece>& pieces, uint64_t base, std::byte* scratch) {
  const Patience patience;
  for (const Piece& piece : pieces) {
    const std::byte* sent = nic.bytes + base + piece.at;
    for (;;) {  // without guarantees only the bytes themselves prove arrival
      Done got;
      require(nic.get(to, base + piece.at, scratch, piece.bytes, &got) == PW_NIC_OK, "get refused");
      nic.end(got, "a get does not end");
      require(got.status == PW_NIC_OK, "a get ended with " + std::to_string(got.status));
      if (std::memcmp(scratch, sent, piece.bytes) == 0) break;
      require(!nic.guarantees(PW_NIC_GETS_BEHIND_PUTS), "a get overtook a put");
      patience.check("a put never arrives");
    }
  }
}

// Waits for the words of all other ranks; once a word has arrived, so has what was put before it.
void await_words(const Nic& nic, uint64_t round) {
  Patience patience;
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    while (word_at(nic, kWords + 8 * static_cast<uint64_t>(r)) < round) {
      patience.check("a word never arrives");
      patience.pause();  // without progress(), because the NIC moves data by itself
    }
    check_inbox(nic, r, round);
  }
}

struct Gets {
  static constexpr uint64_t kBytes = 20000;
  static constexpr size_t kEach = 4;
  Dones done{new Done[kEach * kMostRanks]};
  uint64_t round = 0;

  [[nodiscard]] uint64_t offset(size_t i) const {
    return (i / static_cast<size_t>(ranks) * 50000 + round * 8) % (1 << 19);
  }
  [[nodiscard]] static std::byte* place(const Nic& nic, size_t i) {
    return nic.bytes + (3 << 20) + i * kBytes;
  }
  [[nodiscard]] static size_t count() { return kEach * static_cast<size_t>(ranks); }

  void post(Nic& nic) {
    for (size_t i = 0; i < count(); ++i)
      require(nic.get(static_cast<int>(i) % ranks, offset(i), place(nic, i), kBytes, &done[i]) == PW_NIC_OK,
              "get refused");
  }
  void check_all(Nic& nic) {
    for (size_t i = 0; i < count(); ++i) {
      nic.end(done[i], "a get does not end");
      require(done[i].status == PW_NIC_OK, "a get failed");
      check(place(nic, i), kBytes, static_cast<int>(i) % ranks, 0, offset(i), "get");
      const auto before = static_cast<size_t>(ranks);
      require(i < before || done[i].turn > done[i - before].turn, "a get overtook a get");
    }
  }
};

// Puts random pieces to all ranks and proves arrival; gets what is there; puts words after puts if their
// order is guaranteed.
void mixed(const char* configuration) {
  Nic nic(configuration);
  const uint64_t base =
      kInbox + static_cast<uint64_t>(rank) * kPart;  // the pieces lie at the same place there
  fill(nic.bytes, 1 << 20, rank, 0, 0);
  for (uint64_t round = 1; round <= rounds_or(3); ++round) {
    const auto pieces = pieces_of(rank, round);
    fill(nic.bytes + base, kPart, rank, round, 0);
    meet();
    const Dones puts(new Done[pieces.size() * static_cast<size_t>(ranks)]);
    size_t posted = 0;
    for (const Piece& piece : pieces)
      for (int r = 0; r < ranks; ++r)
        if (r != rank)
          require(nic.put(r, base + piece.at, nic.bytes + base + piece.at, piece.bytes, &puts[posted++],
                          piece.bytes <= 64) == PW_NIC_OK,
                  "put refused");
    const bool words = nic.guarantees(PW_NIC_PUTS_IN_ORDER);
    for (int r = 0; r < ranks; ++r)
      if (words && r != rank)
        require(nic.put(r, kWords + 8 * static_cast<uint64_t>(rank), &round, 8, nullptr, true) == PW_NIC_OK,
                "word");
    Gets gets;
    gets.round = round;
    if ((seed + round) % 2 == 0) gets.post(nic);
    if (words && seed % 3 != 0) await_words(nic, round);
    for (int r = 0; r < ranks; ++r)
      if (r != rank) prove_arrival(nic, r, pieces, base, nic.bytes + (2 << 20));
    if ((seed + round) % 2 != 0) gets.post(nic);
    gets.check_all(nic);
    for (size_t i = 0; i < posted; ++i) {
      nic.end(puts[i], "a put does not end");
      require(puts[i].status == PW_NIC_OK, "a put ended with " + std::to_string(puts[i].status));
    }
    meet();
    for (int r = 0; r < ranks; ++r)
      if (r != rank) check_inbox(nic, r, round);
    meet();
  }
}

// A put of 8 bytes and a word after it, back and forth.
void latency(const char* configuration) {
  Nic nic(configuration);
  const int other = 1 - rank,
            rounds = std::getenv("ROUNDS") != nullptr ? std::atoi(std::getenv("ROUNDS")) : 100000;
  std::vector<double> halves;
  Done done;
  for (int batch = 0; batch < 11; ++batch) {
    const double begin = seconds();
    for (int i = 1; i <= rounds / 10; ++i) {
      const auto value = static_cast<uint64_t>(batch) * 1000000 + static_cast<uint64_t>(i);
      const auto wait = [&] {
        for (int looks = 1; word_at(nic, kWords) != value; ++looks)
          if (looks % 1024 == 0) sched_yield();
      };
      if (rank == 1) wait();
      nic.put(other, kInbox, nic.bytes, 8, nullptr);
      nic.put(other, kWords, &value, 8, nullptr, true);
      if (rank == 0) wait();
    }
    if (batch > 0) halves.push_back((seconds() - begin) / (rounds / 10) / 2);
  }
  std::sort(halves.begin(), halves.end());
  if (rank == 0)
    std::snprintf(meeting->text, sizeof meeting->text, "{\"latency_us\": %.3f}",
                  halves[halves.size() / 2] * 1e6);
}

// Puts of 1 MiB, several at a time, each proven by the get of a word after it.
void bandwidth(const char* configuration) {
  Nic nic(configuration);
  constexpr uint64_t kMessage = 1 << 20;
  constexpr int kDepth = 4;
  const int rounds = static_cast<int>(rounds_or(300));
  if (rank == 0) {
    fill(nic.bytes, kMessage, 0, 1, 0);
    const double begin = seconds();
    Done ends[kDepth];
    for (int i = 0; i < rounds + kDepth; ++i) {
      Done& done = ends[i % kDepth];
      if (i >= kDepth) nic.end(done, "a get does not end");
      if (i >= rounds) continue;
      done.ended = false;
      require(nic.put(1, kInbox, nic.bytes, kMessage, nullptr) == PW_NIC_OK, "put refused");
      require(nic.get(1, kInbox, nic.bytes + (3 << 20), 8, &done) == PW_NIC_OK, "get refused");
    }
    std::snprintf(meeting->text, sizeof meeting->text, "{\"MB_per_s\": %.0f}",
                  static_cast<double>(kMessage) * rounds / (seconds() - begin) / 1e6);
  }
  meet();
  if (rank == 1) check(nic.bytes + kInbox, kMessage, 0, 1, 0, "put");
}

// The last rank is killed, or its node dies by the torus file; the others are informed.
void death(const char* configuration) {
  Nic nic(configuration);
  const bool killed = std::getenv("KILL") != nullptr;
  if (rank == ranks - 1) {
    if (killed) raise(SIGKILL);
    for (Patience patience; meeting->living < ranks - 1;) {
      patience.check("the others are told of nothing");
      patience.pause();
    }
    _exit(0);
  }
  const double begin = seconds();
  pw_nic_status status = PW_NIC_OK;
  while (status == PW_NIC_OK) {
    require(seconds() < begin + kHang, "nobody tells of the death");
    Done got;
    status = nic.get(ranks - 1, 0, nic.bytes, 8, &got);
    if (status != PW_NIC_OK) break;
    nic.end(got, "a get does not end");
    status = got.status;
    usleep(1000);
  }
  require(status == PW_NIC_UNREACHABLE, "the dead one gives status " + std::to_string(status));
  if (rank == 0)
    std::snprintf(meeting->text, sizeof meeting->text, "{\"told_after_s\": %.3f}", seconds() - begin);
  // The living still reach one another.
  Done got;
  require(nic.get(0, 0, nic.bytes, 8, &got) == PW_NIC_OK, "get refused");
  nic.end(got, "a get does not end");
  require(got.status == PW_NIC_OK, "the living do not reach one another");
  ++meeting->living;
  for (Patience patience; meeting->living < ranks - 1 && meeting->failed == 0;) patience.pause();
  _exit(0);
}

// A peer's memory is deregistered while others write to it: the bytes must not change any more.
void deregistered(const char* configuration) {
  Nic nic(configuration);
  std::byte* own = nic.bytes + (4 << 10);
  const pw_nic_span span{sizeof span, own, 4096, PW_NIC_HOST, 0, -1, 0};
  pw_nic_memory* memory = nullptr;
  if (rank == 1)
    require(nic_ops->register_memory(nic.nic, &span, &memory, &meeting->key[1]) == PW_NIC_OK, "register");
  meet();
  pw_nic_remote* remote = nullptr;
  if (rank == 0)
    require(nic_ops->import_key(nic.nic, nic.peer[1], &meeting->key[1], &remote) == PW_NIC_OK, "import");
  meet();
  if (rank == 1) {
    usleep(20000);
    nic_ops->deregister_memory(nic.nic, memory);
    std::memset(own, 0, 4096);
    usleep(20000);
    for (int i = 0; i < 4096; ++i) require(own[i] == std::byte{}, "memory was touched after its end");
    meet();
  } else {
    std::memset(nic.bytes, 0xff, 4096);
    pw_nic_status status = PW_NIC_OK;
    for (const double end = seconds() + 0.06; seconds() < end && status != PW_NIC_REFUSED;) {
      Done done;
      status = nic_ops->put(nic.nic, remote, 0, nic.bytes, nic.memory, 4096, &done);
      if (status == PW_NIC_OK) nic.end(done, "a put does not end");
    }
    Done got;
    status = nic_ops->get(nic.nic, remote, 0, nic.bytes, nic.memory, 8, &got);
    if (status == PW_NIC_OK) {
      nic.end(got, "a get does not end");
      status = got.status;
    }
    require(status == PW_NIC_REFUSED, "a get of deregistered memory gives " + std::to_string(status));
    nic_ops->release_key(nic.nic, remote);
    meet();
  }
}

void enter(const std::string& names) {
  std::vector<std::string> all;
  for (size_t at = 0; at < names.size();) {
    const size_t comma = std::min(names.find(',', at), names.size());
    all.push_back(names.substr(at, comma - at));
    at = comma + 1;
  }
  if (all.empty()) return;
  const std::string path = "/run/netns/" + all[static_cast<size_t>(rank) % all.size()];
  const int space = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(space >= 0 && setns(space, CLONE_NEWNET) == 0, "cannot enter " + path);
  close(space);
}

int run_rank(const char* plugin, const std::string& test, const char* configuration) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, library == nullptr ? dlerror() : "");
  nic_ops = reinterpret_cast<pw_nic_plugin_function>(dlsym(library, PW_NIC_PLUGIN_SYMBOL))();
  // A user whose processes cannot access one another's memory, as in many containers.
  if (std::getenv("APART") != nullptr)
    require(setgid(65534) == 0 && setuid(65534) == 0, "no other user without root");
  if (test == "mixed") mixed(configuration);
  if (test == "latency") latency(configuration);
  if (test == "bandwidth") bandwidth(configuration);
  if (test == "death") death(configuration);
  if (test == "deregistered") deregistered(configuration);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  ranks = std::atoi(arguments[3]);
  seed = count > 5 ? std::strtoull(arguments[5], nullptr, 10) : 1;
  const std::string names = count > 6 ? arguments[6] : "";
  meeting = static_cast<Meeting*>(
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (getrandom(meeting->secret, sizeof meeting->secret, 0) != sizeof meeting->secret) return 2;
  std::vector<pid_t> children;
  for (rank = 0; rank < ranks; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    enter(names);
    setenv("PEERWAY_RANK", std::to_string(rank).c_str(), 1);
    std::exit(run_rank(arguments[1], arguments[2], arguments[4]));
  }
  int wrong = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && std::getenv("KILL") != nullptr;
    if (status != 0 && !killed) {
      std::fprintf(stderr, "a rank ended with status 0x%x\n", status);
      wrong = 1;
    }
  }
  std::printf("%s\n", meeting->text);
  return wrong;
}
