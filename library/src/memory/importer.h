// Mappings of peers' memory. Remotes share them, and the last remote of a mapping undoes it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "base/spin_lock.h"
#include "device/device.h"
#include "memory/control.h"

namespace pw {

class Path;

/// This rank's side of one remote signal, shared by all remotes that import it: what was added in all, and
/// through which path last. Notifications arrive in order: what may not go yet waits in a queue
/// (context/notifications.h), and the next ones behind it.
struct SignalSender {
  SpinLock lock;
  uint64_t notified = 0;
  uint64_t deferred = 0;           ///< notifications that wait in the queue
  Path* through = nullptr;         ///< null: the CPU, whose stores are done at once
  bool planned = false;            ///< a plan or kernels notify it: nobody else does meanwhile
  std::atomic<bool> known{false};  ///< `notified` counts what an earlier import added, too
};

class Importer {
 public:
  /// Knows of the other ranks what their NICs say, which may come later.
  Importer(ControlSegment& own, int own_rank, std::span<const ProcessFacts> processes = {});
  /// Takes the facts of all processes, by rank. It keeps none of ranks of other hosts.
  void meet(std::span<const ProcessFacts> processes);
  ~Importer();
  Importer(const Importer&) = delete;

  /// The process id of a rank of this host.
  [[nodiscard]] int process(int rank) const { return neighbour(rank)->process; }
  [[nodiscard]] bool same_host(int rank) const { return neighbour(rank) != nullptr; }
  [[nodiscard]] bool same_process(int rank) const { return rank == own_rank_; }

  /// Whether the ranks of this host have fewer CPUs than there are of them.
  [[nodiscard]] bool oversubscribed() const { return oversubscribed_; }

  /// The number of ranks of this host that come before this one.
  [[nodiscard]] int local_rank() const { return local_rank_; }

  /// The rank's control segment; null when it lives on another host. Throws Error when it cannot be mapped.
  std::shared_ptr<Control> control(int rank);

  /// The peer's allocation, mapped for `device`. Host memory is pinned when the device is another one. Throws
  /// Error.
  std::shared_ptr<Mapping> map(int rank, const Export& exported, Device& device);

  /// This rank's side of the signal whose word of that rank's control segment this is.
  std::shared_ptr<SignalSender> sender(int rank, uint32_t slot, uint64_t generation,
                                       const std::atomic<uint64_t>* word);

  /// The same for a signal in device memory, whose words the CPU does not see: kept for as long as the
  /// owner has the signal, because later imports go on from where earlier ones were.
  std::shared_ptr<SignalSender> device_sender(int rank, uint32_t slot, uint64_t generation);

  /// The rank's control segment, pinned so that queues of `device` can write its signal words.
  void pin_control(int rank, Device& device);

 private:
  [[nodiscard]] const Neighbour* neighbour(int rank) const;  ///< null: on another host

  ControlSegment& own_;
  int own_rank_;
  std::vector<Neighbour> neighbours_;  ///< in the order of their ranks, this one too
  bool oversubscribed_ = false;
  int local_rank_ = 0;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Control>> controls_;
  std::map<std::pair<int, Device*>, std::shared_ptr<Control>> pinned_controls_;
  std::map<std::tuple<int, uint32_t, uint64_t>, std::weak_ptr<SignalSender>> senders_;
  /// By rank, allocation, its bytes (no key reaches past what was mapped), address and device.
  std::map<std::tuple<int, uint64_t, uint64_t, uint64_t, const Device*>, std::weak_ptr<Mapping>> mappings_;
  std::map<std::tuple<int, uint32_t, uint64_t>, std::shared_ptr<SignalSender>> device_senders_;
  size_t senders_limit_ = 64, device_senders_limit_ = 64, mappings_limit_ = 64;
};

}  // namespace pw
