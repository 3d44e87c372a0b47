// What joins one GPU of this process to the others of its host. The driver takes about a millisecond to say
// so, and nothing changes it while the process runs: each answer is asked for once.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "device/cuda/driver.h"

namespace pw::cuda {

using Uuid = std::array<std::byte, 16>;

/// "GPU-5b2f…", as nvidia-smi writes it.
std::string uuid_text(const Uuid& uuid);

/// The UUID of a GPU that this process sees. Throws Error.
Uuid uuid_of(const Driver& driver, int ordinal);

struct PeerAccess {
  int ordinal = -1;  ///< of the other GPU; -1 where CUDA_VISIBLE_DEVICES hides it from this process
  bool reachable = false;
  std::string link;     ///< "nvlink" or "pcie"; empty where not reachable, and for the GPU itself
  std::string why_not;  ///< where not reachable, and what to do
};

class PeerAccesses {
 public:
  /// `driver` must outlive this.
  PeerAccesses(const Driver& driver, int ordinal);
  [[nodiscard]] const Uuid& own() const { return own_; }
  /// From the GPU to another one, or to itself. Safe from several threads.
  const PeerAccess& to(const Uuid& gpu) const;

 private:
  [[nodiscard]] PeerAccess find(const Uuid& gpu) const;
  [[nodiscard]] PeerAccess between(int other) const;

  const Driver& driver_;
  const int ordinal_;
  const Uuid own_;
  mutable std::mutex mutex_;
  mutable std::map<Uuid, PeerAccess> known_;
};

}  // namespace pw::cuda
