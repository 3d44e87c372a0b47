#include "torus/directory.h"

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

constexpr uint64_t kTouchTimeout = 2'000'000'000, kPortTimeout = 5'000'000'000;

bool alive(const EndpointEntry& entry) {
  const int process = entry.process.load(std::memory_order_acquire);
  return process != 0 && birth_of(process) == entry.birth.load(std::memory_order_relaxed);
}

/// The same for many entries, most of which belong to a few processes: looks up each process once.
class Census {
 public:
  bool alive(const EndpointEntry& entry) {
    const int process = entry.process.load(std::memory_order_acquire);
    if (process == 0) return false;
    const auto [birth, is_new] = births_.try_emplace(process, 0);
    if (is_new) birth->second = birth_of(process);
    return birth->second == entry.birth.load(std::memory_order_relaxed);
  }

 private:
  std::map<int, uint64_t> births_;
};

bool any_alive(const Shared& shared) {
  Census census;
  const uint32_t entries = shared.entries.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < entries && i < kMostEndpoints; ++i)
    if (census.alive(shared.entry[i])) return true;
  return false;
}

// Robust: if a process ends while it holds the lock, the next process gets the lock.
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
  // Reads the first thread's file, because for the process itself /proc adds up all its threads.
  std::ifstream in(format("/proc/{0}/task/{0}/stat", process));
  std::string text;
  if (!std::getline(in, text)) return 0;
  const size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos || text.size() < name_end + 3) return 0;
  const char state = text[name_end + 2];
  if (state == 'Z' || state == 'X') return 0;
  size_t at = name_end + 2;
  for (int field = 3; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 1, nullptr, 10);
}

class Directory::Locked {
 public:
  explicit Locked(Shared& shared) : mutex_(shared.mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~Locked() { pthread_mutex_unlock(&mutex_); }
  Locked(const Locked&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

Directory::Directory(const std::string& name, uint64_t fingerprint, uint64_t session, uint32_t count,
                     const std::function<uint32_t(uint32_t)>& candidate)
    : job_memory_(JobMemory::at(name, sizeof(Shared), offsetof(Shared, generation),
                                [](std::byte* address) {
                                  auto& shared =
                                      *reinterpret_cast<Shared*>(address);  // everything else begins as 0
                                  make_mutex(shared.mutex);
                                  shared.secret = random_bytes<sizeof(Secret)>();
                                })),
      shared_(reinterpret_cast<Shared*>(job_memory_->address())) {
  Locked locked(*shared_);
  agree(fingerprint);
  claim(session, count, candidate);
}

void Directory::agree(uint64_t fingerprint) {
  if (!any_alive(*shared_)) {
    shared_->fingerprint = fingerprint;
    shared_->begun = now_ns();
  }
  if (shared_->fingerprint.load() != fingerprint)
    throw Failure(
        PW_NIC_INVALID,
        "torus: other endpoints of this job read another torus file; give all of them the same one");
}

Directory::~Directory() { leave(); }

void Directory::claim(uint64_t session, uint32_t count, const std::function<uint32_t(uint32_t)>& candidate) {
  Census census;
  for (uint32_t i = 0; i < count && number_ == UINT32_MAX; ++i) {
    const uint32_t number = candidate(i);
    EndpointEntry& entry = shared_->entry[number];
    if (census.alive(entry)) continue;
    // Memory of the entry's last endpoint is no longer registered.
    for (uint32_t slot = 0; slot < entry.used; ++slot)
      if (auto& generation = shared_->generation[number][slot]; generation % 2 == 1) ++generation;
    for (auto& touching : entry.touching) touching[0] = 0;
    entry.port = 0;
    entry.port_requested = false;
    entry.birth = birth_of(getpid());
    entry.session = session;
    entry.process = getpid();
    if (shared_->entries <= number) shared_->entries = number + 1;
    number_ = number;
  }
}

void Directory::leave() {
  if (number_ == UINT32_MAX) return;
  Locked locked(*shared_);
  shared_->entry[number_].session = 0;
  shared_->entry[number_].process = 0;
  number_ = UINT32_MAX;
}

std::atomic<uint32_t>& Directory::generation(uint32_t slot) const {
  auto& word = shared_->generation[number_][slot];
  constexpr uint32_t kInPage = 4096 / sizeof word;
  const auto offset = static_cast<uint64_t>(reinterpret_cast<std::byte*>(&word) - job_memory_->address());
  if (slot % kInPage == 0 && !job_memory_->hold(offset, 4096))
    throw Failure(PW_NIC_BROKEN,
                  format("torus: no memory to register another {} memories{}", kInPage, errno_text(errno)));
  return word;
}

uint16_t Directory::request_port(uint32_t number) const {
  const EndpointEntry& entry = shared_->entry[number];
  const uint64_t deadline = now_ns() + kPortTimeout;
  while (entry.port.load() == 0 && now_ns() < deadline) {
    if (!shared_->entry[number].port_requested.exchange(true)) job_memory_->wake_all();
    usleep(200);
  }
  return entry.port.load();
}

void Directory::wait_untouched(uint64_t tag) const {
  const uint64_t deadline = now_ns() + kTouchTimeout;
  const uint32_t entries = shared_->entries.load();
  for (uint32_t i = 0; i < entries; ++i)
    for (const auto& touching : shared_->entry[i].touching)
      for (uint32_t looks = 1; touching[0].load() == tag && now_ns() < deadline; ++looks) {
        sched_yield();
        if (looks % 1024 == 0 && !alive(shared_->entry[i])) break;
      }
}

}  // namespace pw::torus
