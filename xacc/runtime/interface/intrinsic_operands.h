// The operands of the transformational intrinsics: each node gets the arrays in whole and keeps its own part
// of the result. So any mappings go together, and each node needs memory for all of these arrays.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <vector>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// The place in the program that errors of intrinsics name: they are functions, and know no line.
extern const pwx_where kIntrinsic;

/// All elements of an array in C order, at this node.
struct Whole {
  std::vector<long> extents;
  size_t element = 1;  ///< bytes
  std::vector<char> bytes;

  explicit Whole(const pwx_array& a);
  [[nodiscard]] long count() const;
  char* at(long i) { return bytes.data() + static_cast<size_t>(i) * element; }
  [[nodiscard]] const char* at(long i) const { return bytes.data() + static_cast<size_t>(i) * element; }
};

/// Collective: copies an array from all nodes to each.
Whole gather_whole(const pwx_array& a);
/// Collective: copies to each node what it owns of the array.
void scatter_whole(const pwx_array& a, Whole& whole);

/// The array behind a descriptor of the program. Throws Failure for NULL.
const pwx_array& array_at(void* desc, const char* function);

// Each throws Failure, which names the function, where the arrays do not fit.
void check_elements(const char* function, const pwx_array& a, const pwx_array& other);
void check_rank(const char* function, const pwx_array& a, int rank);
void check_extent(const char* function, const pwx_array& a, int d, const pwx_array& b, int e);
void check_shape(const char* function, const pwx_array& a, const pwx_array& b);

/// Collective: for each element of a mask whether it is true. Without a mask all are.
std::vector<char> mask_flags(const char* function, const pwx_array& shape, void* mask);

/// Collective: the element numbers in `indexed` that index arrays of one shape hold, one array a dimension.
/// They count from `first` in each dimension, from 0 if that is null.
std::vector<long> indexed_elements(const char* function, const pwx_array& shape, const pwx_array& indexed,
                                   void* const* indices, const long* first);

}  // namespace pwx
