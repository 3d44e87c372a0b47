// The host's end of a FIFO, through which kernels post puts and notifications to the proxy. The kernels' end
// is library/include/peerway/device/fifo.cuh.
#pragma once

#include <memory>
#include <vector>

#include "context/context.h"
#include "device/program.h"
#include "plan/run/proxy.h"

namespace pw {

/// The remotes and regions that a FIFO's entries name, by their index here.
struct FifoLists {
  std::vector<std::shared_ptr<Region>> regions;
  std::vector<Remote*> remotes;  ///< regions and signals
};

/// The part of a FIFO that the proxy polls. It takes the entries in their order, starts what they ask for,
/// and tells the kernels up to which entry everything is complete.
class PostedFifo final : public Served {
 public:
  PostedFifo(Context& context, Device& device, uint32_t count, FifoLists lists, std::shared_ptr<Guard> guard);

  Poll poll() override;
  void cancel(pw_status why, const std::string& message) override;
  /// Sets the members of the handle that refer to host memory, as addresses of the device.
  void fill(Device& device, pw_fifo_handle& handle) const;

 private:
  /// The counters that kernels read. In pinned host memory, before the entries.
  struct Counters {
    std::atomic<uint64_t> taken;             ///< number of entries read: their places are free again
    alignas(64) std::atomic<uint64_t> done;  ///< number of entries whose operations are complete
  };
  static constexpr uint64_t kEntriesAt = 4096;

  bool cancelled_by_kernel();
  bool take(pw_fifo_entry& entry);
  pw_status begin(const pw_fifo_entry& entry);
  Remote& remote_at(uint64_t place, KeyType type) const;
  bool complete();
  /// Cancels the FIFO unless the status is PW_OK. Returns whether it is.
  bool ok_or_cancel(pw_status status);

  Context& context_;
  uint64_t count_;
  FifoLists lists_;
  std::shared_ptr<Guard> guard_;
  std::shared_ptr<void> memory_;
  Counters* counters_;
  pw_fifo_entry* entries_;
  std::vector<int> ranks_;  ///< ranks of the remotes, each once
  uint64_t taken_ = 0;      ///< Counters::taken
  uint64_t done_ = 0;       ///< Counters::done
  uint64_t marked_ = 0;     ///< number of entries that `marks_` follow; if at most done_, there are no marks
  Marks marks_;             ///< when these are reached, `marked_` entries are done
  uint64_t deadline_ns_ = 0;  ///< for reaching the marks
};

/// The FIFO itself. peerway::Fifo of the C++ interface (peerway/plan.hpp) owns a handle of it.
class Fifo {
 public:
  /// Throws Error.
  Fifo(Context& context, Device& device, uint32_t count, FifoLists lists);
  ~Fifo();
  Fifo(const Fifo&) = delete;

  [[nodiscard]] pw_fifo_handle handle() const;
  [[nodiscard]] pw_status status() const;

 private:
  Context& context_;
  Device& device_;
  std::shared_ptr<Guard> guard_;
  std::shared_ptr<Region> device_counters_;  ///< those that only kernels use
  std::shared_ptr<PostedFifo> served_;
  std::shared_ptr<Proxy> proxy_;
  std::shared_ptr<void> on_loss_, on_close_;
};

}  // namespace pw
