// All ranks of a halo must mean the same arrays: what each asks for is gathered and compared first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "peerway/peerway.h"
#include "team/agreement.h"

namespace pw::array {

/// What a rank that refuses cannot do.
inline constexpr const char* kMakeHalo = "make this halo";

/// What a rank tells the others beside the arrays themselves. Plain bytes.
struct Opening {
  int32_t device_kind = -1;  ///< of its arrays; -1: it owns no part of any
  uint32_t arrays = 0;
  uint32_t corners = 0;
  pw_grid grid{};
};

/// What all ranks told, in rank order. Their arrays are without regions, which mean nothing elsewhere.
struct Told {
  std::vector<Opening> openings;
  std::vector<pw_array> arrays;  ///< as many of each rank as of rank 0
};

/// Throws Error where some rank asks for another grid, number of arrays, or corners than rank 0. Pure.
void check_openings(std::span<const Opening> openings);

/// Throws Error where the arrays of some rank are not those of rank 0: all but strides, offsets and regions
/// must be equal. `all` has `arrays` of each rank. Pure.
void check_arrays(std::span<const pw_array> all, uint32_t arrays);

/// Collective. Throws Error at every rank where one refuses, or they ask for different halos.
Told exchange(Team& team, const Objection& objection, const Opening& mine, std::span<const pw_array> arrays);

}  // namespace pw::array
