// Builds copies and programs in the form that the common device code (peerway/device) runs. Pure decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "device/program.h"
#include "peerway/device/plan.cuh"

namespace pw {

/// The divisor for `count`, at least 1 and at most 2^31.
peerway::device::Divisor divisor(uint32_t count);

/// The widest word (16, 8, 4, 2 or 1 bytes) by which the copy can be made. For contiguous copies only the
/// distance between the two sides counts, because single bytes can be copied before the first word.
unsigned word_bytes(const Copy& copy);

/// The copy in words of that many bytes, by which it must be possible.
peerway::device::StridedCopy strided(const Copy& copy, unsigned word_bytes);

/// Whether the step sends or receives by lines.
bool by_lines(StepKind kind);

/// The steps as the kernels want them, of the start and then of the finish; `seen` gives the address at which
/// the GPU finds one of the process. Pure but for it.
std::vector<peerway::device::Step> make_steps(const Program& program,
                                              const std::function<uint64_t(const void*)>& seen);

}  // namespace pw
