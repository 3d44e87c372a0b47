// All ranks of a halo must mean the same arrays, and one rank's refusal must not leave the others waiting: so
// what each rank asks for is gathered and compared first, and every rank ends alike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "peerway/peerway.h"
#include "team/team.h"

namespace pw::array {

/// What a rank tells the others before the arrays themselves. Plain bytes.
struct Opening {
  int32_t status = PW_OK;    ///< why the rank refuses what it was asked for
  int32_t device_kind = -1;  ///< of its arrays; -1: it owns no part of any
  uint32_t arrays = 0;
  uint32_t corners = 0;
  pw_grid grid{};
  char message[640] = "";  ///< of the refusal
};

/// The opening of a rank that refuses.
Opening refusal_of(const Error& error);

/// Throws this rank's own error, or that of the first rank that refuses; then for ranks that ask for
/// different grids, numbers of arrays or corners. Pure.
void check_openings(std::span<const Opening> openings, int rank);

/// Throws Error where the arrays of some rank are not those of rank 0: all but strides, offsets and regions
/// must be equal. `all` has `arrays` of each rank. Pure.
void check_arrays(std::span<const pw_array> all, uint32_t arrays);

/// Collective. Every rank's opening, in rank order, checked.
std::vector<Opening> exchange(Team& team, const Opening& mine);

/// Collective. Every rank's arrays, in rank order, checked; without regions, which mean nothing elsewhere.
std::vector<pw_array> exchange(Team& team, std::span<const pw_array> mine);

}  // namespace pw::array
