// One-sided operations inside kernels: makes the handles of remotes and signals that kernels use, and keeps
// valid what the handles refer to.
#pragma once

#include <cstdint>
#include <memory>

#include "context/context.h"
#include "context/signal.h"
#include "peerway/handles.h"
#include "plan/run/guard.h"

namespace pw {

/// Returns a handle of the remote region for kernels of the device. Throws Error if they cannot reach it.
pw_remote_handle handle_of(Remote& remote, Device& device);

/// Lets kernels of one device notify a remote signal. While it lives, nothing else of this rank may notify
/// the signal.
class KernelNotifications {
 public:
  /// Throws Error if the device does not reach the signal, or if a plan or other kernels notify it.
  KernelNotifications(Context& context, Remote& signal, Device& device);
  /// Reads back up to which value the kernels have notified the signal. No kernel may use the handle any
  /// more.
  ~KernelNotifications();
  KernelNotifications(const KernelNotifications&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] pw_notify_handle handle() const;

 private:
  Context& context_;
  Remote& signal_;
  Device& device_;
  uint64_t* word_;     ///< the signal's word, which kernels store to
  DeviceWords total_;  ///< the value up to which the kernels have notified the signal
  std::unique_ptr<WordAccess> access_;
};

/// Lets kernels of one device wait for a signal. Ends their waits if the sender is lost or the context is
/// closed.
class KernelWaits {
 public:
  /// Throws Error if kernels of the device cannot wait for the signal.
  KernelWaits(Context& context, const Signal& signal, Device& device);

  [[nodiscard]] Device& device() const { return device_; }
  /// Returns a handle whose waits last at most `timeout_ns` each. Clears the reports of earlier waits.
  pw_signal_handle handle(uint64_t timeout_ns);
  /// Returns PW_OK, or why a wait ended early, with a message.
  [[nodiscard]] pw_status status() const;

 private:
  Context& context_;
  const Signal& signal_;
  Device& device_;
  uint64_t* words_;
  uint32_t count_ = 0;
  uint64_t timeout_ns_ = 0;
  std::shared_ptr<Guard> guard_;
  std::shared_ptr<void> on_loss_, on_close_;
};

}  // namespace pw
