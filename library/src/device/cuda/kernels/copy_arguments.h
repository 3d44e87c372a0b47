// The parameters of the copy kernels. Compiled by the host compiler and by NVRTC: plain types only.
#pragma once

#include "peerway/device/copy.cuh"

namespace pw::cuda {

constexpr unsigned kThreads = 256;        // per block
constexpr unsigned kBlocksPerSm = 4;      // keeps enough loads in flight to fill NVLink and the memory
constexpr unsigned kMaxWords = 1u << 30;  // per launch, so that 32 bits can count them

struct CopyArguments {
  peerway::device::StridedCopy copy;
  unsigned long long* signal;  // null: no signal
  unsigned long long value;    // stored in *signal once everything is visible to all
  unsigned* finished;          // number of blocks that are done; zero before and after each launch
};

}  // namespace pw::cuda
