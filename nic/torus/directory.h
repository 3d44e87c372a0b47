// The state that the endpoints of one job on one host share: which endpoint has which (node, context), which
// registered memory is still valid, who accesses it now, and until when each link is busy. Entries of dead
// processes are reused, and the state is gone when the last process has ended (job_memory.h).
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

inline constexpr uint32_t kSlots = 1u << 14;  ///< largest number of memories registered by an endpoint at a
                                              ///< time

/// One endpoint. Of the two `touching`, one is for the thread that posts and one for the engine.
struct EndpointEntry {
  std::atomic<int32_t> process;      ///< 0: free
  std::atomic<uint64_t> birth;       ///< distinguishes the process from a later one with the same id
  std::atomic<uint64_t> session;     ///< of the endpoint; 0: closed
  std::atomic<uint32_t> used;        ///< number of slots ever used
  std::atomic<uint16_t> port;        ///< port of its UDP socket, in network byte order; 0: it has none
  std::atomic<bool> port_requested;  ///< set by a peer that must send to it
  alignas(64) std::atomic<uint64_t> touching[2][8];  ///< [thread][0]: tag of the slot being accessed; the
                                                     ///< rest pads the cache line
};

struct Shared {
  pthread_mutex_t mutex;              ///< guards `entry`; robust against the death of its owner
  Secret secret;                      ///< used if the job was given no secret
  std::atomic<uint64_t> fingerprint;  ///< of the torus file; 0: not set yet
  std::atomic<uint64_t> begun;        ///< time of the begin, on the monotonic clock
  std::atomic<uint32_t> entries;      ///< every entry that was ever used has a smaller number
  std::atomic<uint64_t> busy[kMostEndpoints * kDirections];  ///< time until which each link is busy
  EndpointEntry entry[kMostEndpoints];
  // Separate from the entries, which are all read now and then, so that this touches few pages. Pages are
  // allocated as they are needed.
  alignas(
      4096) std::atomic<uint32_t> generation[kMostEndpoints][kSlots];  ///< by entry and slot; odd: registered
};

class Directory {
 public:
  /// `name` identifies the job and the host. Takes the first free entry among candidate(0) to candidate(count
  /// - 1) for the endpoint `session`. Throws Failure, also if other processes of the job read another torus
  /// file.
  Directory(const std::string& name, uint64_t fingerprint, uint64_t session, uint32_t count,
            const std::function<uint32_t(uint32_t)>& candidate);
  ~Directory();
  Directory(const Directory&) = delete;

  [[nodiscard]] Shared& shared() const { return *shared_; }
  [[nodiscard]] uint32_t number() const {
    return number_;
  }  ///< number of the entry; UINT32_MAX: none was
     ///< free
  /// Frees the entry, so that peers see that the endpoint is closed.
  void leave();

  /// Returns the generation of a slot of this endpoint. Throws Failure if there is no memory for it.
  std::atomic<uint32_t>& generation(uint32_t slot) const;

  /// Waits briefly until the endpoint of that number has a UDP socket, and returns its port; 0 if it has
  /// none.
  uint16_t request_port(uint32_t number) const;
  [[nodiscard]] const JobMemory& job_memory() const { return *job_memory_; }

  /// Returns a tag that is unique to the slot and not 0.
  static uint64_t tag(uint32_t number, uint32_t slot) { return uint64_t{number} << 32 | (slot + 1); }
  /// Waits until no living process accesses the slot: accesses that began before its generation changed have
  /// ended.
  void wait_untouched(uint64_t tag) const;

 private:
  class Locked;
  void agree(uint64_t fingerprint);
  void claim(uint64_t session, uint32_t count, const std::function<uint32_t(uint32_t)>& candidate);

  std::shared_ptr<JobMemory> job_memory_;
  Shared* shared_ = nullptr;
  uint32_t number_ = UINT32_MAX;
};

/// Returns when the process began, on the clock of /proc; 0 if it is gone or a zombie.
uint64_t birth_of(int process);

}  // namespace pw::torus
