// Maps peers' memory. Remotes share a mapping, and the last remote that uses it undoes it.
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

/// This rank's state of one signal of another rank, shared by all remotes that import the signal: how far
/// this rank has notified it, and the path of the last notification. Notifications arrive in order: one that
/// must wait is queued (context/notifications.h), and later ones are queued behind it.
struct SignalSender {
  SpinLock lock;
  uint64_t notified = 0;           ///< sum of this rank's notifications: the value of its word
  uint64_t deferred = 0;           ///< number of notifications in the queue
  Path* through = nullptr;         ///< path of the last; null: the CPU, whose stores are complete at once
  bool planned = false;            ///< a plan or kernels notify it; all other notifications are refused
  std::atomic<bool> known{false};  ///< whether `notified` includes what an earlier import added
};

class Importer {
 public:
  /// `processes` may also be given later, by set_processes().
  Importer(ControlSegment& own, int own_rank, std::span<const ProcessFacts> processes = {});
  /// Takes the facts of all processes, indexed by rank. It keeps only those of ranks on this host.
  void set_processes(std::span<const ProcessFacts> processes);
  ~Importer();
  Importer(const Importer&) = delete;

  /// Returns the process id of a rank of this host.
  [[nodiscard]] int process(int rank) const { return neighbour(rank)->process; }
  [[nodiscard]] bool same_host(int rank) const { return neighbour(rank) != nullptr; }
  [[nodiscard]] bool same_process(int rank) const { return rank == own_rank_; }

  /// Whether the ranks of this host outnumber their CPUs.
  [[nodiscard]] bool oversubscribed() const { return oversubscribed_; }

  /// The number of ranks on this host with a smaller rank number.
  [[nodiscard]] int local_rank() const { return local_rank_; }

  /// The number of ranks of this host, this one too.
  [[nodiscard]] int local_size() const { return static_cast<int>(neighbours_.size()); }

  /// Returns the rank's control segment; null if the rank is on another host. Throws Error if mapping fails.
  std::shared_ptr<Control> control(int rank);

  /// Returns the peer's allocation, mapped for `device`. Host memory is also pinned if the device is not the
  /// host. Throws Error.
  std::shared_ptr<Mapping> map(int rank, const Export& exported, Device& device);

  /// Returns this rank's state of a signal; `word` is its word in the control segment of `rank`.
  std::shared_ptr<SignalSender> sender(int rank, uint32_t slot, uint64_t generation,
                                       const std::atomic<uint64_t>* word);

  /// The same for a signal in device memory, whose words the CPU cannot read. The state is kept as long as
  /// the owner has the signal, because later imports continue the count of earlier ones.
  std::shared_ptr<SignalSender> device_sender(int rank, uint32_t slot, uint64_t generation);

  /// Pins the rank's control segment so that queues of `device` can write its signal words.
  void pin_control(int rank, Device& device);

 private:
  [[nodiscard]] const Neighbour* neighbour(int rank) const;  ///< null if the rank is on another host

  ControlSegment& own_;
  int own_rank_;
  std::vector<Neighbour> neighbours_;  ///< sorted by rank, including this one
  bool oversubscribed_ = false;
  int local_rank_ = 0;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Control>> controls_;
  std::map<std::pair<int, Device*>, std::shared_ptr<Control>> pinned_controls_;
  std::map<std::tuple<int, uint32_t, uint64_t>, std::weak_ptr<SignalSender>> senders_;
  /// Key: rank, allocation, its bytes (so that no key reaches past what was mapped), address and device.
  std::map<std::tuple<int, uint64_t, uint64_t, uint64_t, const Device*>, std::weak_ptr<Mapping>> mappings_;
  std::map<std::tuple<int, uint32_t, uint64_t>, std::shared_ptr<SignalSender>> device_senders_;
  size_t senders_limit_ = 64, device_senders_limit_ = 64, mappings_limit_ = 64;
};

}  // namespace pw
