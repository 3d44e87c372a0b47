// The copies of a coarray on the GPUs of all images. An image makes its copy when the coarray first becomes
// present there, at any time; the copy stays, so that others can reach it. Its key is in a mailbox in host
// memory, from which others fetch it.
#pragma once

#include <optional>
#include <vector>

#include "xacc/runtime/program/symmetric_memory.h"

namespace pwx {

class CoarrayOnGpus {
 public:
  /// Collective over all images; `host` is this image's memory.
  explicit CoarrayOnGpus(const peerway::Region& host);

  /// This image's copy, which the first call makes.
  peerway::Region& memory();
  /// Another image's copy. Throws Failure if it has none yet.
  peerway::Remote& remote(int rank, const char* name);

 private:
  size_t bytes_;
  SymmetricMemory mailboxes_;
  std::optional<peerway::Region> memory_;
  std::vector<std::optional<peerway::Remote>> remotes_;
};

}  // namespace pwx
