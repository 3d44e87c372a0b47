// One distributed array: which part each rank owns, who its neighbours are, and how the part lies in a rank's
// memory. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "array/grid.h"
#include "peerway/peerway.h"

namespace pw::array {

using Counts = std::array<uint64_t, PW_MAX_ARRAY_DIMS>;
using ArrayStrides = std::array<int64_t, PW_MAX_ARRAY_DIMS>;

class Distribution {
 public:
  /// Checks all that does not depend on a rank, so that all ranks refuse the same. `number` is the array's
  /// place in the list, for messages. The grid must outlive it. Throws Error.
  Distribution(const Grid& grid, const pw_array& array, uint32_t number);

  [[nodiscard]] uint32_t dims() const { return array_.dims; }
  [[nodiscard]] uint64_t element_bytes() const { return array_.element_bytes; }
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] uint64_t shadow(uint32_t d, Side side) const { return array_.dim[d].shadow[side]; }
  [[nodiscard]] uint64_t width(uint32_t d, Side side) const { return array_.dim[d].width[side]; }

  /// Elements that the rank there owns, in each dimension.
  [[nodiscard]] Counts owned(const Coordinates& at) const;
  [[nodiscard]] bool empty(const Coordinates& at) const;

  /// Moves `at` to its neighbour in dimension d; false where there is none.
  bool step(Coordinates& at, uint32_t d, Side side) const;

  /// Elements of the rank's memory: what it owns and its shadow; all zero where it owns nothing.
  [[nodiscard]] Counts held(const Coordinates& at) const;

  /// The strides of the rank's memory, `given` in bytes or all zero for dense. Throws Error for strides that
  /// are not positive or do not nest.
  [[nodiscard]] ArrayStrides strides(const ArrayStrides& given, const Coordinates& at) const;

  /// Bytes from the first byte of the rank's memory to one past its last. Throws Error when it overflows.
  [[nodiscard]] uint64_t span_bytes(const ArrayStrides& strides, const Coordinates& at) const;

 private:
  void check_dimension(uint32_t d) const;
  void check_shadow(uint32_t d) const;
  [[nodiscard]] uint32_t parts(uint32_t d) const;
  [[nodiscard]] uint32_t index(uint32_t d, const Coordinates& at) const;
  [[nodiscard]] std::string named() const;

  const Grid& grid_;
  pw_array array_;
  uint32_t number_;
};

/// The strides that `array` gives.
ArrayStrides given_strides(const pw_array& array);

}  // namespace pw::array
