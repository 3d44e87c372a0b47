// Checks that all ranks of a halo describe the same arrays: each rank sends its request to its neighbours,
// and they compare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "array/distribution.h"
#include "base/bytes.h"
#include "peerway/peerway.h"

namespace pw::array {

/// What a rank tells the others of the halo that it requests, besides the arrays. Plain bytes.
struct HaloOpening {
  int32_t device_kind = -1;  ///< device kind of its arrays; -1: it owns no part of any array
  uint32_t arrays = 0;
  uint32_t corners = 0;
  pw_grid grid{};
};

/// The halo that a rank requests. Its arrays have no regions, because those mean nothing at other ranks.
struct RequestedHalo {
  HaloOpening opening;
  std::vector<pw_array> arrays;
};

Bytes pack(const RequestedHalo& halo);
/// Throws Error if the bytes are not a request.
RequestedHalo parse_requested_halo(ByteView bytes);

/// Throws Error if two ranks request different grids, numbers of arrays, corners, or arrays: everything but
/// strides, offsets and regions must be equal. Pure.
void check_same(int rank, const RequestedHalo& halo, int other_rank, const RequestedHalo& other);

/// Returns the ranks to which a rank sends its request, so that they compare it with theirs: the ranks that
/// it shares faces with; its neighbours in the grid, as if every dimension were periodic, which links all
/// ranks; and rank 0, if this rank owns nothing and so takes the kind of device from rank 0. Pure.
std::vector<int> listeners(std::span<const Distribution> arrays, int rank, bool corners);

}  // namespace pw::array
