// Converts copies and programs to the form that the common device code (peerway/device) runs. Pure decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "device/program.h"
#include "peerway/device/plan.cuh"

namespace pw {

/// Returns the divisor for `count`, which must be from 1 to 2^31.
peerway::device::Divisor divisor(uint32_t count);

/// Returns the widest word (16, 8, 4, 2 or 1 bytes) with which the copy can be made. For contiguous copies
/// only the distance between the two sides matters, because single bytes can be copied before the first word.
unsigned word_bytes(const Copy& copy);

/// Returns the copy in words of `word_bytes` bytes, which must be possible.
peerway::device::StridedCopy strided(const Copy& copy, unsigned word_bytes);

/// Whether the step sends or receives by lines.
bool by_lines(StepKind kind);

/// Returns the steps in the form for kernels, first those of the start, then those of the finish, then those
/// of each round. `seen` returns the GPU's address for an address of the process. Pure except for `seen`.
std::vector<peerway::device::Step> make_steps(const Program& program,
                                              const std::function<uint64_t(const void*)>& seen);

}  // namespace pw
