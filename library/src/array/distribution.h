// One distributed array: which part each rank owns, who its neighbours are, and the layout of the part in a
// rank's memory. Pure.
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
  /// Checks everything that does not depend on a rank, so that all ranks refuse the same arrays. `number` is
  /// the array's index in the list, for messages. The grid must outlive this object. Throws Error.
  Distribution(const Grid& grid, const pw_array& array, uint32_t number);

  [[nodiscard]] uint32_t dims() const { return array_.dims; }
  [[nodiscard]] uint64_t element_bytes() const { return array_.element_bytes; }
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] uint64_t shadow(uint32_t d, Side side) const { return array_.dim[d].shadow[side]; }
  [[nodiscard]] uint64_t width(uint32_t d, Side side) const { return array_.dim[d].width[side]; }

  /// Returns the number of elements that the rank at `at` owns, in each dimension.
  [[nodiscard]] Counts owned(const Coordinates& at) const;
  [[nodiscard]] bool empty(const Coordinates& at) const;

  /// Moves `at` to its neighbour in dimension d; returns false if there is none.
  bool step(Coordinates& at, uint32_t d, Side side) const;

  /// Returns the number of elements in the rank's memory, owned and shadow, in each dimension; all zero if it
  /// owns nothing.
  [[nodiscard]] Counts held(const Coordinates& at) const;

  /// Returns the strides of the rank's memory in bytes. `given` has strides in bytes, or zeros for dense
  /// ones. Throws Error if strides are not positive or do not nest.
  [[nodiscard]] ArrayStrides strides(const ArrayStrides& given, const Coordinates& at) const;

  /// Returns the bytes from the first byte of the rank's memory to one past its last. Throws Error on
  /// overflow.
  [[nodiscard]] uint64_t extent_bytes(const ArrayStrides& strides, const Coordinates& at) const;

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

/// Returns the strides in `array`.
ArrayStrides given_strides(const pw_array& array);

}  // namespace pw::array
