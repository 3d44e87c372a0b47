// The state that the endpoints of one job on one host share: who has which (node, context), which registered
// memory is still valid, who accesses it now, and until when each link is busy. Places of dead processes are
// taken over, and the state is gone when the last process has ended (job_memory.h).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/siphash.h"
#include "torus/file.h"
#include "torus/job_memory.h"
#include "torus/route.h"

namespace pw::torus {

inline constexpr uint32_t kSlots = 1u << 14;  ///< registered memories of an endpoint at a time

/// One endpoint. The two `touching` are of the thread that posts and of the engine.
struct EndpointEntry {
  std::atomic<int32_t> process;      ///< 0: free
  std::atomic<uint64_t> birth;       ///< tells the process from a later one with its number
  std::atomic<uint64_t> session;     ///< of the endpoint; 0: closed
  std::atomic<uint32_t> used;        ///< slots ever used
  std::atomic<uint16_t> port;        ///< of its UDP socket, in network byte order; 0: it has none
  std::atomic<bool> port_requested;  ///< by a peer that sends to it
  alignas(
      64) std::atomic<uint64_t> touching[2][8];  ///< [thread][0]: tag of a slot; the rest keeps lines apart
};

struct Shared {
  pthread_mutex_t mutex;                                     ///< guards `entry`; survives its owners
  Secret secret;                                             ///< for a job that was given none
  std::atomic<uint64_t> fingerprint;                         ///< of the torus file; 0: not made yet
  std::atomic<uint64_t> begun;                               ///< when, on the monotonic clock
  std::atomic<uint32_t> entries;                             ///< all that were ever taken are below
  std::atomic<uint64_t> busy[kMostEndpoints * kDirections];  ///< until when each link is taken
  EndpointEntry entry[kMostEndpoints];
  // Apart from the entries, which are all looked at now and then, so that few pages are touched; pages are
  // held as they are needed.
  alignas(
      4096) std::atomic<uint32_t> generation[kMostEndpoints][kSlots];  ///< by entry and slot; odd: registered
};

class Directory {
 public:
  /// `name` tells the job and the host. Takes the first free entry among candidate(0) to candidate(count - 1)
  /// for the endpoint `session`. Throws Failure, also when others of the job read another torus file.
  Directory(const std::string& name, uint64_t fingerprint, uint64_t session, uint32_t count,
            const std::function<uint32_t(uint32_t)>& candidate);
  ~Directory();
  Directory(const Directory&) = delete;

  [[nodiscard]] Shared& shared() const { return *shared_; }
  [[nodiscard]] uint32_t number() const { return number_; }  ///< of the entry; UINT32_MAX: none was free
  /// Gives the entry back, so that peers see that the endpoint is closed.
  void leave();

  /// The generation of a slot of this endpoint. Throws Failure when there is no memory for it.
  std::atomic<uint32_t>& generation(uint32_t slot) const;

  /// Waits, not for long, until the endpoint of that number has a UDP socket, and returns its port; 0: it has
  /// none.
  uint16_t request_port(uint32_t number) const;
  [[nodiscard]] const JobMemory& job_memory() const { return *job_memory_; }

  /// A tag that no two slots share, and is not 0.
  static uint64_t tag(uint32_t number, uint32_t slot) { return uint64_t{number} << 32 | (slot + 1); }
  /// Waits until no living process touches the slot: what it began before the generation changed has ended.
  void wait_untouched(uint64_t tag) const;

 private:
  class Locked;
  void agree(uint64_t fingerprint);
  void claim(uint64_t session, uint32_t count, const std::function<uint32_t(uint32_t)>& candidate);

  std::shared_ptr<JobMemory> job_memory_;
  Shared* shared_ = nullptr;
  uint32_t number_ = UINT32_MAX;
};

/// When the process began, on the clock of /proc; 0 when it is gone, or only waits to be reaped.
uint64_t birth_of(int process);

}  // namespace pw::torus
