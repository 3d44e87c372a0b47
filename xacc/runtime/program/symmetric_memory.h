// Memory that every image has, and that all images can reach.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "xacc/runtime/program/program.h"

namespace pwx {

class SymmetricMemory {
 public:
  /// Collective over all images.
  explicit SymmetricMemory(peerway::Region memory)
      : memory_(std::move(memory)),
        keys_(program().team.all_gather(memory_.key())),
        remotes_(static_cast<size_t>(program().size())) {}

  [[nodiscard]] peerway::Region& here() { return memory_; }
  [[nodiscard]] peerway::Remote& at(long image) {
    auto& there = remotes_[static_cast<size_t>(image)];
    if (!there) there = program().context.import(keys_[static_cast<size_t>(image)]);
    return *there;
  }

 private:
  peerway::Region memory_;
  std::vector<peerway::Key> keys_;
  std::vector<std::optional<peerway::Remote>> remotes_;
};

}  // namespace pwx
