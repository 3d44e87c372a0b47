#include "torus/board.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/clock.h"
#include "base/format.h"
#include "base/random.h"
#include "base/status.h"
#include "torus/failure.h"

namespace pw::torus {
namespace {

constexpr uint64_t kLongestTouch = 2'000'000'000, kLongestAsked = 5'000'000'000;

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

// A process that ends while it has the lock leaves it to the next one.
void make_mutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
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
  explicit Locked(Shared& shared) : mutex_(shared.mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~Locked() { pthread_mutex_unlock(&mutex_); }
  Locked(const Locked&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

Board::Board(const std::string& name, uint64_t fingerprint, uint64_t session, uint32_t count,
             const std::function<uint32_t(uint32_t)>& candidate)
    : meeting_(Meeting::at(name, sizeof(Shared), offsetof(Shared, generation),
                           [](std::byte* address) {
                             auto& shared = *reinterpret_cast<Shared*>(address);  // all else begins with 0
                             make_mutex(shared.mutex);
                             shared.secret = random_bytes<sizeof(Secret)>();
                           })),
      shared_(reinterpret_cast<Shared*>(meeting_->address())) {
  Locked locked(*shared_);
  agree(fingerprint);
  claim(session, count, candidate);
}

void Board::agree(uint64_t fingerprint) {
  if (!anybody_in(*shared_)) {
    shared_->fingerprint = fingerprint;
    shared_->begun = now_ns();
  }
  if (shared_->fingerprint.load() != fingerprint)
    throw Failure(
        PW_NIC_INVALID,
        "torus: other endpoints of this job read another torus file; give all of them the same one");
}

Board::~Board() { leave(); }

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
    seat.port = 0;
    seat.asked = false;
    seat.birth = birth_of(getpid());
    seat.session = session;
    seat.process = getpid();
    if (shared_->seats <= number) shared_->seats = number + 1;
    number_ = number;
  }
}

void Board::leave() {
  if (number_ == UINT32_MAX) return;
  Locked locked(*shared_);
  shared_->seat[number_].session = 0;
  shared_->seat[number_].process = 0;
  number_ = UINT32_MAX;
}

std::atomic<uint32_t>& Board::generation(uint32_t slot) const {
  auto& word = shared_->generation[number_][slot];
  constexpr uint32_t kInPage = 4096 / sizeof word;
  const auto offset = static_cast<uint64_t>(reinterpret_cast<std::byte*>(&word) - meeting_->address());
  if (slot % kInPage == 0 && !meeting_->hold(offset, 4096))
    throw Failure(PW_NIC_BROKEN,
                  format("torus: no memory to register another {} memories{}", kInPage, errno_text(errno)));
  return word;
}

uint16_t Board::ask_for_port(uint32_t number) const {
  const Seat& seat = shared_->seat[number];
  const uint64_t deadline = now_ns() + kLongestAsked;
  while (seat.port.load() == 0 && now_ns() < deadline) {
    if (!shared_->seat[number].asked.exchange(true)) meeting_->ring();
    usleep(200);
  }
  return seat.port.load();
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
