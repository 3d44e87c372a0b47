#include "device/overlap.h"

#include <algorithm>
#include <array>

namespace pw {
namespace {

struct Dimension {
  int64_t stride;
  int64_t last;     ///< largest index
  uint32_t number;  ///< of the dimension in the block
};

// Two blocks share a byte if the difference of their indices, a vector of integers that are not all zero,
// gives a distance of less than one block. The search fixes one difference after the other, largest stride
// first, and skips those that the smaller strides cannot compensate. If strides nest, it skips all of them,
// so the search is long only if strides interleave.
class Search {
 public:
  explicit Search(const pw_block& block) : block_bytes_(static_cast<int64_t>(block.block_bytes)) {
    for (uint32_t d = 0; d < block.dims; ++d)
      if (block.count[d] > 1) insert({block.stride[d], static_cast<int64_t>(block.count[d]) - 1, d});
    for (uint32_t d = 0; d < dims_; ++d)
      reach_[d + 1] = reach_[d] + dimension_[d].last * dimension_[d].stride;
  }

  Overlap run() {
    for (uint32_t d = 0; d < dims_; ++d) {
      // A vector and its negative are equivalent, so the first non-zero difference can be positive.
      for (int64_t k = 1; k <= dimension_[d].last && k * dimension_[d].stride <= slack(d); ++k) {
        if (steps_ > kOverlapSteps) return at(d, Overlap::Kind::undecided);
        if (comes_close(d, k * dimension_[d].stride)) return at(d, Overlap::Kind::some);
      }
      if (steps_ > kOverlapSteps) return at(d, Overlap::Kind::undecided);
    }
    return {};
  }

 private:
  void insert(const Dimension& next) {
    uint32_t at = dims_++;
    for (; at > 0 && dimension_[at - 1].stride > next.stride; --at) dimension_[at] = dimension_[at - 1];
    dimension_[at] = next;
  }

  [[nodiscard]] Overlap at(uint32_t d, Overlap::Kind kind) const {
    return {kind, dimension_[d].number, static_cast<uint64_t>(reach_[d] + block_bytes_)};
  }

  // The largest distance that the `dims` smallest dimensions can reduce to less than a block.
  [[nodiscard]] int64_t slack(uint32_t dims) const { return reach_[dims] + block_bytes_ - 1; }

  // Whether differences in the `dims` smallest dimensions reduce `distance` to less than a block.
  bool comes_close(uint32_t dims, int64_t distance) {
    if (++steps_ > kOverlapSteps) return false;
    if (dims == 0) return distance > -block_bytes_ && distance < block_bytes_;
    const int64_t stride = dimension_[dims - 1].stride, last = dimension_[dims - 1].last;
    const int64_t room = slack(dims - 1);
    const int64_t most = std::min(last, floor_divide(room - distance, stride));
    for (int64_t k = std::max(-last, -floor_divide(room + distance, stride)); k <= most; ++k)
      if (comes_close(dims - 1, distance + k * stride)) return true;
    return false;
  }

  static int64_t floor_divide(int64_t a, int64_t positive) {
    return a / positive - (a % positive < 0 ? 1 : 0);
  }

  int64_t block_bytes_;
  uint32_t dims_ = 0;
  std::array<Dimension, PW_MAX_DIMS> dimension_{};  ///< smallest stride first
  std::array<int64_t, PW_MAX_DIMS + 1> reach_{};    ///< for each number of dimensions: the largest distance
                                                    ///< that they span
  uint32_t steps_ = 0;
};

// Whether each stride is at least as large as the span of the dimensions after it. That is the usual order,
// and it is quick to check.
bool nests_in_order(const pw_block& block) {
  int64_t within = static_cast<int64_t>(block.block_bytes);
  for (uint32_t d = block.dims; d-- > 0;) {
    if (block.count[d] == 1) continue;
    if (block.stride[d] < within) return false;
    within += (static_cast<int64_t>(block.count[d]) - 1) * block.stride[d];
  }
  return true;
}

}  // namespace

Overlap find_overlap(const pw_block& block) {
  return block.block_bytes == 0 || nests_in_order(block) ? Overlap{} : Search(block).run();
}

}  // namespace pw
