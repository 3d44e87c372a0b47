// The request of a staged transfer: the initiator makes it, the target checks its side, and failures are
// reported back. Used over shared memory (staged) and over UCX (ucx/staged).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/path.h"

namespace pw {

/// The target's half of a transfer.
struct StagedRequest {
  Op op = Op::put;
  uint32_t slot = 0;  ///< of the target's region
  uint64_t generation = 0;
  uint64_t offset = 0;  ///< of the first byte in the target's region
  Layout layout;        ///< as in Transfer
};

StagedRequest request_for(const Transfer& transfer);

/// Returns whether the blocks that start at `offset` lie in a span of `span` bytes, and have no more bytes
/// than the span.
bool lies_inside(const Shape& shape, const Strides& strides, uint64_t offset, uint64_t span);

/// The region that a request refers to, kept while the request is served.
class Target {
 public:
  /// Finds the region and checks that the request stays inside it.
  Target(const StagedRequest& request, Registry& registry);
  Target() = default;

  /// PW_OK, or why the request cannot be served.
  [[nodiscard]] pw_status status() const { return status_; }
  void set_status(pw_status status) { status_ = status; }

  /// The address of the first byte; null if there is no region.
  [[nodiscard]] std::byte* address() const { return region_ != nullptr ? address_ : nullptr; }
  [[nodiscard]] Device& device() const { return region_->device(); }

  /// Whether the owner has closed the region and waits until nobody uses it.
  [[nodiscard]] bool wanted_back() const { return region_ != nullptr && region_->closed(); }
  void let_go();  ///< releases the region; the request then fails with PW_STALE_KEY

 private:
  std::shared_ptr<Region> region_;
  std::byte* address_ = nullptr;
  pw_status status_ = PW_OK;
};

/// Packs failures into one word: how many requests failed, and the status of the last. Zero: none failed.
inline uint64_t failure_word(uint64_t count, pw_status last) {
  return count << 8 | static_cast<uint64_t>(last);
}

/// At the initiator: returns the failure in `word` as a status with a message, unless `reported` has it
/// already.
pw_status tell_failure(uint64_t word, std::atomic<uint64_t>& reported, int rank);

/// Refuses a transfer because an earlier one failed half-way, so that the two ends disagree about the ring.
pw_status refuse_after(pw_status broken, int rank);

}  // namespace pw
