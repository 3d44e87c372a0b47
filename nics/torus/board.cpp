#include "torus/board.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "torus/failure.h"

namespace pw::torus {
namespace {

const std::string kFolder = "/dev/shm/";
constexpr uint64_t kLongestTouch = 2'000'000'000;

bool alive(const Seat& seat) {
  const int process = seat.process.load(std::memory_order_acquire);
  return process != 0 && birth_of(process) == seat.birth.load(std::memory_order_relaxed);
}

/// The same of many seats, most of which are of a few processes: each process is looked at once.
class Census {
 public:
  bool alive(const Seat& seat) {
    const int process = seat.process.load(std::memory_order_acquire);
    if (process == 0) return false;
    const auto [found, is_new] = births_.try_emplace(process, 0);
    if (is_new) found->second = birth_of(process);
    return found->second == seat.birth.load(std::memory_order_relaxed);
  }

 private:
  std::map<int, uint64_t> births_;
};

bool anybody_in(const Shared& shared) {
  Census census;
  const uint32_t seats = shared.seats.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < seats && i < kMostEndpoints; ++i)
    if (census.alive(shared.seat[i])) return true;
  return false;
}

Shared* map_board(int file) {
  void* address = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return address == MAP_FAILED ? nullptr : static_cast<Shared*>(address);
}

// Removes what a killed job left. Whoever opens a board has its lock, or waits for it and finds the file
// gone.
void sweep(const std::string& prefix) {
  DIR* folder = opendir(kFolder.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (std::string_view(entry->d_name).substr(0, prefix.size()) != prefix) continue;
    const std::string path = kFolder + entry->d_name;
    const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat found{};
    if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0 || fstat(file.get(), &found) != 0) continue;
    if (static_cast<size_t>(found.st_size) != sizeof(Shared)) continue;
    Shared* shared = map_board(file.get());
    if (shared == nullptr) continue;
    if (!anybody_in(*shared)) unlink(path.c_str());
    munmap(shared, sizeof(Shared));
  }
  closedir(folder);
}

}  // namespace

uint64_t birth_of(int process) {
  // Of the first thread: that of the process sums over all of its threads.
  std::ifstream in(format("/proc/{0}/task/{0}/stat", process));
  std::string text;
  if (!std::getline(in, text)) return 0;
  const size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos || text.size() < name_end + 3) return 0;
  const char state = text[name_end + 2];
  if (state == 'Z' || state == 'X') return 0;
  size_t at = name_end + 2;
  for (int field = 3; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 1, nullptr, 10);
}

class Board::Locked {
 public:
  explicit Locked(int file) : file_(file) {
    while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Locked() { flock(file_, LOCK_UN); }
  Locked(const Locked&) = delete;

 private:
  int file_;
};

void Board::open_file() {
  file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_)
    throw Failure(PW_NIC_BROKEN,
                  format("torus: the job's board {} cannot be opened{}", path_, lacking(errno)));
}

// Opened and claimed under one lock: a board at which nobody sits is swept away.
Board::Board(const std::string& name, uint64_t fingerprint, uint64_t session, uint32_t count,
             const std::function<uint32_t(uint32_t)>& candidate) {
  const std::string prefix = format("peerway-torus-{}-", getuid());
  path_ = kFolder + prefix + name;
  sweep(prefix);
  for (;;) {
    open_file();
    Locked locked(file_.get());
    struct stat found{};
    if (fstat(file_.get(), &found) != 0 || found.st_nlink == 0) continue;  // the last one just left
    if (found.st_uid != getuid())
      throw Failure(PW_NIC_BROKEN, format("torus: {} belongs to user {}; remove it", path_, found.st_uid));
    map(fingerprint);
    claim(session, count, candidate);
    return;
  }
}

void Board::map(uint64_t fingerprint) {
  if (ftruncate(file_.get(), sizeof(Shared)) != 0)
    throw Failure(PW_NIC_BROKEN, format("torus: no room for {}{}", path_, errno_text(errno)));
  shared_ = map_board(file_.get());
  if (shared_ == nullptr)
    throw Failure(PW_NIC_BROKEN, format("torus: {} cannot be mapped{}", path_, errno_text(errno)));
  if (!anybody_in(*shared_)) {
    shared_->fingerprint = fingerprint;
    shared_->begun = now_ns();
  }
  if (shared_->fingerprint.load() == fingerprint) return;
  munmap(shared_, sizeof(Shared));
  throw Failure(PW_NIC_INVALID,
                "torus: other endpoints of this job read another torus file; give all of them the same one");
}

Board::~Board() {
  leave();
  {
    Locked locked(file_.get());
    if (!anybody_in(*shared_)) unlink(path_.c_str());
  }
  munmap(shared_, sizeof(Shared));
}

void Board::claim(uint64_t session, uint32_t count, const std::function<uint32_t(uint32_t)>& candidate) {
  Census census;
  for (uint32_t i = 0; i < count && number_ == UINT32_MAX; ++i) {
    const uint32_t number = candidate(i);
    Seat& seat = shared_->seat[number];
    if (census.alive(seat)) continue;
    // Memory of whoever sat here is no longer registered.
    for (uint32_t slot = 0; slot < seat.used; ++slot)
      if (auto& generation = shared_->generation[number][slot]; generation % 2 == 1) ++generation;
    for (auto& touching : seat.touching) touching[0] = 0;
    seat.birth = birth_of(getpid());
    seat.session = session;
    seat.process = getpid();
    if (shared_->seats <= number) shared_->seats = number + 1;
    number_ = number;
  }
}

void Board::leave() {
  if (number_ == UINT32_MAX) return;
  Locked locked(file_.get());
  shared_->seat[number_].session = 0;
  shared_->seat[number_].process = 0;
  number_ = UINT32_MAX;
}

void Board::wait_untouched(uint64_t tag) const {
  const uint64_t deadline = now_ns() + kLongestTouch;
  const uint32_t seats = shared_->seats.load();
  for (uint32_t i = 0; i < seats; ++i)
    for (const auto& touching : shared_->seat[i].touching)
      for (uint32_t looks = 1; touching[0].load() == tag && now_ns() < deadline; ++looks) {
        sched_yield();
        if (looks % 1024 == 0 && !alive(shared_->seat[i])) break;
      }
}

}  // namespace pw::torus
