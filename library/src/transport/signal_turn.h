// A turn at a signal: while a thread holds it, no other thread of this rank notifies that signal. Peers see a
// word that holds the sum of this rank's notifications, so the sums must be stored one after another.
#pragma once

#include <mutex>

#include "memory/remote.h"

namespace pw {

class Path;

class SignalTurn {
 public:
  /// Takes the turn for a notification that path `storing` will store; null: the CPU. Refuses an invalid
  /// notification.
  pw_status begin(const Notification& notification, Path* storing);

  /// Whether the notification may be stored at once, without overtaking earlier ones.
  [[nodiscard]] bool can_store_now() const { return can_store_now_; }
  [[nodiscard]] Remote& signal() const { return *notification_.signal; }
  [[nodiscard]] uint64_t total() const { return sender().notified + notification_.by; }
  /// Call it once the store of the total was started, so that the next may follow. Ends the turn.
  void stored();

  /// Stores the total by the CPU, and ends the turn.
  void store_by_cpu();

  /// This rank's state of the signal; holding its lock is the turn.
  [[nodiscard]] SignalSender& sender() const { return *notification_.signal->sender(); }

 private:
  Notification notification_;
  Path* storing_ = nullptr;
  std::unique_lock<SpinLock> lock_;
  bool can_store_now_ = false;
};

}  // namespace pw
