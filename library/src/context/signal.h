// Signals: the counters that peers notify and this rank waits on.
#pragma once

#include <cstdint>
#include <vector>

#include "context/context.h"

namespace pw {

/// A signal of this rank. It has one word for each rank that may notify it, and its value is their sum.
/// (peerway::Signal of the C++ interface owns a handle of it; signals of other ranks are Remotes.)
class Signal {
 public:
  Signal(Context& context, int sender);
  /// Makes a signal whose words lie in the memory of `device`, where kernels poll them without leaving it;
  /// the host reads them by copies. On the host device this is the same as the constructor above.
  Signal(Context& context, int sender, Device& device);
  ~Signal();
  Signal(const Signal&) = delete;

  /// Throws Error if words in device memory cannot be read.
  [[nodiscard]] uint64_t value() const;
  pw_status wait(uint64_t value, uint64_t timeout_ns) const;
  [[nodiscard]] std::vector<std::byte> key() const;

  [[nodiscard]] int sender() const { return sender_; }
  /// Returns the addresses of the signal's words for the device's queues, and how many there are. Throws
  /// Error if the queues cannot reach them.
  uint64_t* words_on(Device& device, uint32_t& count) const;

  /// The value that plans have waited for so far; the next plan counts from there.
  uint64_t planned = 0;

  /// The name of this signal in a trace.
  [[nodiscard]] int32_t trace_tag() const;

 private:
  [[nodiscard]] bool on_device() const { return device_words_.region != nullptr; }
  void give_words();
  pw_status wait_now(uint64_t value, uint64_t timeout_ns) const;
  pw_status wait_on_device(uint64_t value, uint64_t timeout_ns) const;

  Context& context_;
  int sender_;
  uint32_t slot_;
  uint32_t words_;
  uint32_t first_ = 0;        ///< index of its first word in the control segment
  DeviceWords device_words_;  ///< used instead of the control segment if the signal lies on a device
};

}  // namespace pw
