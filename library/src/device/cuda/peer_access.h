// Finds the links between a GPU of this process and the other GPUs of its host. The driver takes about a
// millisecond for an answer, and answers do not change while the process runs, so each question is asked
// once.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "device/cuda/driver.h"

namespace pw::cuda {

using Uuid = std::array<std::byte, 16>;

/// Returns "GPU-5b2f…", in the format of nvidia-smi.
std::string uuid_text(const Uuid& uuid);

/// Returns the UUID of a GPU that this process sees. Throws Error.
Uuid uuid_of(const Driver& driver, int ordinal);

struct PeerAccess {
  int ordinal = -1;  ///< number of the other GPU; -1 if CUDA_VISIBLE_DEVICES hides it from this process
  bool reachable = false;
  std::string link;     ///< "nvlink" or "pcie"; empty if not reachable, and for the GPU itself
  std::string why_not;  ///< if not reachable: why, and what to do
};

class PeerAccesses {
 public:
  /// `driver` must outlive this.
  PeerAccesses(const Driver& driver, int ordinal);
  [[nodiscard]] const Uuid& own() const { return own_; }
  /// Returns the access from the GPU to another one, or to itself. Several threads may call it.
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
