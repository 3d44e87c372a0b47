// A turn at a signal: while a thread has it, no other thread of this rank notifies that signal. Peers see a
// word that holds the sum of this rank's notifications, so notifications must be stored one after another.
#pragma once

#include <mutex>

#include "memory/remote.h"

namespace pw {

class Path;

class SignalTurn {
 public:
  /// Takes the turn for a notification that `by` will store; null: the CPU. Refuses one that cannot be.
  pw_status begin(const Notification& notification, Path* by);

  /// Whether the notification may be stored at once: nothing that was notified before may be overtaken.
  [[nodiscard]] bool now() const { return now_; }
  [[nodiscard]] Remote& signal() const { return *notification_.signal; }
  [[nodiscard]] uint64_t total() const { return sender().notified + notification_.by; }
  /// The store of the total has been started, so the next may follow. Gives the turn up.
  void stored();

  /// The CPU stores it.
  void store();

  /// This rank's side of the signal, whose lock the turn is.
  [[nodiscard]] SignalSender& sender() const { return *notification_.signal->sender(); }

 private:
  Notification notification_;
  Path* by_ = nullptr;
  std::unique_lock<SpinLock> lock_;
  bool now_ = false;
};

}  // namespace pw
