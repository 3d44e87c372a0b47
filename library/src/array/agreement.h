// Checks that all ranks of a halo describe the same arrays: each sends its request to its neighbours and
// compares.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "array/distribution.h"
#include "base/bytes.h"
#include "peerway/peerway.h"

namespace pw::array {

/// The facts that a rank sends the others beside the arrays themselves. Plain bytes.
struct HaloOpening {
  int32_t device_kind = -1;  ///< of its arrays; -1: it owns no part of any
  uint32_t arrays = 0;
  uint32_t corners = 0;
  pw_grid grid{};
};

/// The halo that a rank requests. Its arrays are without regions, which mean nothing elsewhere.
struct HaloAsk {
  HaloOpening opening;
  std::vector<pw_array> arrays;
};

Bytes pack(const HaloAsk& ask);
/// Throws Error for bytes that are no such thing.
HaloAsk parse_ask(ByteView bytes);

/// Throws Error where two ranks ask for different grids, numbers of arrays, corners, or arrays: all but
/// strides, offsets and regions must be equal. Pure.
void check_same(int rank, const HaloAsk& ask, int other_rank, const HaloAsk& other);

/// Whom a rank tells what it asks for: those that it shares faces with; its neighbours in the grid, round the
/// ends, so that every rank is compared with all by way of others; and rank 0, if this one owns nothing, from
/// which it takes the kind of device. Pure.
std::vector<int> listeners(std::span<const Distribution> arrays, int rank, bool corners);

}  // namespace pw::array
