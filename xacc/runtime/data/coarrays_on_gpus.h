// The copies of a coarray on the GPUs of all images. Each is made when its image first makes the coarray
// present, whenever that is, and stays, so that others reach it. Its key lies in a box, from which others
// fetch it.
#pragma once

#include <optional>
#include <vector>

#include "xacc/runtime/program/symmetric_memory.h"

namespace pwx {

class CoarrayOnGpus {
 public:
  /// Collective over all images; `host` is this image's memory.
  explicit CoarrayOnGpus(const peerway::Region& host);

  /// This image's copy, made at the first call.
  peerway::Region& memory();
  /// Another image's. Throws Failure where it has none yet.
  peerway::Remote& remote(long image, const char* name);

 private:
  size_t bytes_;
  SymmetricMemory boxes_;
  std::optional<peerway::Region> memory_;
  std::vector<std::optional<peerway::Remote>> remotes_;
};

}  // namespace pwx
