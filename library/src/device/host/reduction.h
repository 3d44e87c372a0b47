// Combines the operands of several ranks by the CPU.
#pragma once

#include "peerway/device/element.cuh"

namespace pw {

/// Addresses need not be aligned. The target may be the operand of this rank.
void host_reduce(const peerway::device::Reduction& reduction);

}  // namespace pw
