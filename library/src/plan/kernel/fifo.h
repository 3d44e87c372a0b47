// A FIFO from kernels to the proxy: the host's end of library/include/peerway/device/fifo.cuh.
#pragma once

#include <memory>
#include <vector>

#include "context/context.h"
#include "device/program.h"
#include "plan/run/proxy.h"

namespace pw {

/// The remotes and regions that a FIFO's entries name.
struct FifoLists {
  std::vector<std::shared_ptr<Region>> regions;
  std::vector<Remote*> remotes;  ///< regions and signals
};

/// Reads the entries, does them in their order, and tells how far it is.
class PostedFifo final : public Served {
 public:
  PostedFifo(Context& context, Device& device, uint32_t count, FifoLists lists, std::shared_ptr<Guard> guard);

  Poll poll() override;
  void cancel(pw_status why, const std::string& message) override;
  /// The part of the handle that lies in host memory, as the device sees it.
  void fill(Device& device, pw_fifo_handle& handle) const;

 private:
  /// In pinned host memory, before the entries.
  struct Progress {
    std::atomic<uint64_t> taken;
    alignas(64) std::atomic<uint64_t> done;
  };
  static constexpr uint64_t kEntriesAt = 4096;

  bool cancelled_by_kernel();
  bool take(pw_fifo_entry& entry);
  pw_status begin(const pw_fifo_entry& entry);
  Remote& remote_at(uint64_t place, KeyType type) const;
  bool complete();
  bool must(pw_status status);

  Context& context_;
  uint64_t count_;
  FifoLists lists_;
  std::shared_ptr<Guard> guard_;
  std::shared_ptr<void> memory_;
  Progress* progress_;
  pw_fifo_entry* entries_;
  std::vector<int> ranks_;  ///< of the remotes, each once
  uint64_t taken_ = 0;
  uint64_t done_ = 0;
  uint64_t marked_ = 0;  ///< entries that `marks_` are about; at most as many as are done: no marks
  Marks marks_;
  uint64_t deadline_ns_ = 0;  ///< for them
};

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
  std::shared_ptr<Region> counters_;  ///< in device memory
  std::shared_ptr<PostedFifo> served_;
  std::shared_ptr<Proxy> proxy_;
  std::shared_ptr<void> on_loss_, on_close_;
};

}  // namespace pw
