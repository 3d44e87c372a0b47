// One-sided operations inside kernels: what the handles of remotes and signals contain, and what keeps that
// valid.
#pragma once

#include <cstdint>
#include <memory>

#include "context/context.h"
#include "context/signal.h"
#include "peerway/handles.h"
#include "plan/run/guard.h"

namespace pw {

/// The remote region as kernels of the device reach it. Throws Error when they do not.
pw_remote_handle handle_of(Remote& remote, Device& device);

/// Lets kernels of one device notify a remote signal, and nobody else of this rank meanwhile.
class KernelNotifications {
 public:
  /// Throws Error when the device does not reach the signal, or a plan or another device's kernels notify it.
  KernelNotifications(Context& context, Remote& signal, Device& device);
  /// Reads back how far the kernels have notified it: none of them runs any more.
  ~KernelNotifications();
  KernelNotifications(const KernelNotifications&) = delete;

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] pw_notify_handle handle() const;

 private:
  Context& context_;
  Remote& signal_;
  Device& device_;
  uint64_t* word_;
  DeviceWords total_;
  std::unique_ptr<WordAccess> access_;
};

/// Lets kernels of one device wait for a signal, and ends their waits.
class KernelWaits {
 public:
  /// Throws Error when kernels of the device cannot wait for the signal.
  KernelWaits(Context& context, const Signal& signal, Device& device);

  [[nodiscard]] Device& device() const { return device_; }
  /// A handle whose waits last at most `timeout_ns` each. Reports of earlier waits are forgotten.
  pw_signal_handle handle(uint64_t timeout_ns);
  /// PW_OK, or what ended a wait early, with the message.
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
