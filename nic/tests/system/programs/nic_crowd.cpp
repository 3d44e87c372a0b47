// Opens as many endpoints of a plugin of peerway/nic.h as possible, several in each process. Each puts to its
// neighbour and gets from it, and every byte is checked; one endpoint more is refused.
//
//     nic_crowd PLUGIN PROCESSES ENDPOINTS-OF-EACH CONFIGURATION [DESCRIPTORS]
//
// Prints a line of JSON: what was opened, what the last endpoint was told, and what all of them cost.
// DESCRIPTORS is the limit of descriptors of a process.
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "peerway/nic.h"

namespace {

constexpr int kMostEndpoints = 1024;
constexpr double kHang = 60;  // seconds

const pw_nic_ops* nic_ops;
int processes, each, process;

struct Meeting {
  std::atomic<int> arrived, turn, failed;
  pw_nic_address address[kMostEndpoints];
  pw_nic_key key[kMostEndpoints];
  std::atomic<uint32_t> taken[kMostEndpoints];  // numbers of endpoints
  std::atomic<long> kib, threads, descriptors;
  char refused[512];
};
Meeting* meeting;

double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void require(bool holds, const std::string& expectation) {
  if (holds) return;
  std::fprintf(stderr, "process %d: %s\n", process, expectation.c_str());
  meeting->failed = 1;
  _exit(1);
}

template <typename Holds>
void await(const char* expectation, Holds&& holds) {
  for (const double limit = seconds() + kHang; !holds(); usleep(100)) {
    if (meeting->failed != 0) _exit(1);
    require(seconds() < limit, expectation);
  }
}

void meet() {
  const int turn = meeting->turn;
  if (++meeting->arrived == processes) {
    meeting->arrived = 0;
    ++meeting->turn;
  }
  await("the others do not come", [&] { return meeting->turn != turn; });
}

struct Done : pw_nic_done {
  bool ended = false;
  Done() {
    call = [](pw_nic_done* self, pw_nic_status status) {
      require(status == PW_NIC_OK, "an operation ended with status " + std::to_string(status));
      static_cast<Done*>(self)->ended = true;
    };
  }
};

/// An endpoint, its memory (what others read, what they write, and what it got) and the connection to the
/// next one.
struct Member {
  static constexpr uint64_t kWords = 1024;
  int place;
  std::array<uint64_t, 3 * kWords> words{};
  pw_nic* nic = nullptr;
  pw_nic_memory* memory = nullptr;
  pw_nic_peer* peer = nullptr;
  pw_nic_remote* remote = nullptr;
  Done put_done, get_done;

  static uint64_t word(int of, uint64_t at) { return (static_cast<uint64_t>(of) << 32) + at + 1; }

  Member(int at, const char* configuration) : place(at) {
    for (uint64_t i = 0; i < kWords; ++i) words[i] = word(place, i);
    const pw_nic_options options{sizeof options, static_cast<uint64_t>(getppid()), configuration, nullptr};
    if (nic_ops->open(&options, &nic) != PW_NIC_OK) require(false, nic_ops->why(nullptr));
    pw_nic_info info{};
    info.size = sizeof info;
    nic_ops->query(nic, &info);
    require(info.number < kMostEndpoints && meeting->taken[info.number]++ == 0, "a number is there twice");
    const pw_nic_span span{sizeof span, words.data(), sizeof words, PW_NIC_HOST, 0, -1, 0};
    require(nic_ops->register_memory(nic, &span, &memory, &meeting->key[place]) == PW_NIC_OK, "register");
    nic_ops->address(nic, &meeting->address[place]);
  }
  void connect() {
    const int to = (place + each + 1) % (processes * each);  // in the next process
    if (nic_ops->connect(nic, &meeting->address[to], &peer) != PW_NIC_OK) require(false, nic_ops->why(nic));
    require(nic_ops->import_key(nic, peer, &meeting->key[to], &remote) == PW_NIC_OK, "import");
  }
  void start() {
    constexpr uint64_t kBytes = kWords * 8;
    require(nic_ops->put(nic, remote, kBytes, words.data(), memory, kBytes, &put_done) == PW_NIC_OK, "put");
    require(nic_ops->get(nic, remote, 0, &words[2 * kWords], memory, kBytes, &get_done) == PW_NIC_OK, "get");
  }
  void end() {
    await("an operation does not end",
          [&] { return nic_ops->progress(nic), put_done.ended && get_done.ended; });
  }
  void check() const {
    const int all = processes * each;
    const int to = (place + each + 1) % all, from = (place + 2 * all - each - 1) % all;
    for (uint64_t i = 0; i < kWords; ++i) {
      require(words[kWords + i] == word(from, i), "a put brought other bytes");
      require(words[2 * kWords + i] == word(to, i), "a get brought other bytes");
    }
  }
  void close() {
    nic_ops->release_key(nic, remote);
    nic_ops->disconnect(nic, peer);
    nic_ops->deregister_memory(nic, memory);
    nic_ops->close(nic);
  }
};

long status_of(const char* name) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long value = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::strncmp(line, name, std::strlen(name)) == 0) value = std::atol(line + std::strlen(name) + 1);
  std::fclose(file);
  return value;
}

long descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  long count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count - 3;  // ., .. and the folder's own
}

void one_too_many(const char* configuration) {
  const pw_nic_options options{sizeof options, static_cast<uint64_t>(getppid()), configuration, nullptr};
  pw_nic* nic = nullptr;
  require(nic_ops->open(&options, &nic) == PW_NIC_BUSY, "there is room for one more");
  std::snprintf(meeting->refused, sizeof meeting->refused, "%s", nic_ops->why(nullptr));
  for (char& c : meeting->refused)
    if (c == '"') c = '\'';
}

void limit_descriptors(const char* most) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most == nullptr ? limit.rlim_max : std::strtoull(most, nullptr, 10);
  setrlimit(RLIMIT_NOFILE, &limit);
}

int run_process(char** arguments, const char* most) {
  limit_descriptors(most);
  if (processes > 1) setenv("PEERWAY_RANK", std::to_string(process).c_str(), 1);
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, library == nullptr ? dlerror() : "");
  nic_ops = reinterpret_cast<pw_nic_plugin_function>(dlsym(library, PW_NIC_PLUGIN_SYMBOL))();
  const long before = status_of("RssAnon:"), shared = status_of("RssShmem:");
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < each; ++i)
    members.push_back(std::make_unique<Member>(process * each + i, arguments[4]));
  meet();
  if (process == 0) one_too_many(arguments[4]);
  for (auto& member : members) member->connect();
  meet();
  for (auto& member : members) member->start();
  for (auto& member : members) member->end();
  meet();
  for (auto& member : members) member->check();
  meeting->kib += status_of("RssAnon:") - before + status_of("RssShmem:") - shared;
  meeting->threads += status_of("Threads:");
  meeting->descriptors += descriptors();
  meet();
  for (auto& member : members) member->close();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  processes = std::atoi(arguments[2]), each = std::atoi(arguments[3]);
  if (processes * each > kMostEndpoints) return 2;
  meeting = static_cast<Meeting*>(
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const double begin = seconds();
  for (process = 0; process < processes; ++process)
    if (fork() == 0) std::exit(run_process(arguments, count > 5 ? arguments[5] : nullptr));
  int wrong = 0;
  for (int status = 0; wait(&status) > 0;) wrong |= status;
  std::printf(
      "{\"endpoints\": %d, \"seconds\": %.2f, \"MiB\": %ld, \"threads\": %ld, \"descriptors\": %ld, "
      "\"refused\": \"%s\"}\n",
      processes * each, seconds() - begin, meeting->kib / 1024, meeting->threads.load(),
      meeting->descriptors.load(), meeting->refused);
  return wrong == 0 ? 0 : 1;
}
