// Memory that every image has, and that all images can reach. The images are the nodes that execute.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "xacc/runtime/program/program.h"

namespace pwx {

class SymmetricMemory {
 public:
  /// Collective over the nodes that execute.
  explicit SymmetricMemory(peerway::Region memory);

  [[nodiscard]] peerway::Region& here() { return memory_; }
  /// The memory of a rank. Throws Failure if that rank did not take part in making it.
  [[nodiscard]] peerway::Remote& at(int rank);

 private:
  peerway::Region memory_;
  std::vector<peerway::Key> keys_;  ///< by rank; empty of ranks that did not take part
  std::vector<std::optional<peerway::Remote>> remotes_;
};

}  // namespace pwx
