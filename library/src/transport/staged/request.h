// What the initiator of a staged transfer asks of the target, how the target answers for its side, and how a
// failure comes back. Shared by the ways the two can meet: shared memory (staged) and UCX (ucx/staged).
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

/// Whether the blocks that start at `offset` lie in a span of that many bytes, and are no more bytes than it
/// has.
bool lies_inside(const Shape& shape, const Strides& strides, uint64_t offset, uint64_t span);

/// The region that a request is about, held for as long as it is served.
class Target {
 public:
  /// Finds the region and checks that the request stays inside it.
  Target(const StagedRequest& request, Registry& registry);
  Target() = default;

  /// PW_OK, or why the request cannot be served.
  [[nodiscard]] pw_status status() const { return status_; }
  void set_status(pw_status status) { status_ = status; }

  /// The address of the first byte; null when there is no region.
  [[nodiscard]] std::byte* address() const { return region_ != nullptr ? address_ : nullptr; }
  [[nodiscard]] Device& device() const { return region_->device(); }

  /// The owner wants the region back and waits until nobody holds it.
  [[nodiscard]] bool wanted_back() const { return region_ != nullptr && region_->closed(); }
  void let_go();  ///< the request has failed with PW_STALE_KEY from here on

 private:
  std::shared_ptr<Region> region_;
  std::byte* address_ = nullptr;
  pw_status status_ = PW_OK;
};

/// Requests that failed, in one word: how many, and the status of the last. Zero says that none did.
inline uint64_t failure_word(uint64_t count, pw_status last) {
  return count << 8 | static_cast<uint64_t>(last);
}

/// At the initiator: the failure that `word` tells of, unless `reported` has it already.
pw_status tell_failure(uint64_t word, std::atomic<uint64_t>& reported, int rank);

/// Refuses a transfer because an earlier one ended half way, so that the two ends disagree on what is where.
pw_status refuse_after(pw_status broken, int rank);

}  // namespace pw
