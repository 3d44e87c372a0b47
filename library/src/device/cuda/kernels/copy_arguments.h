// The parameters of the copy kernels. Compiled by the host compiler and by NVRTC: plain types only.
#pragma once

#include "peerway/device/copy.cuh"

namespace pw::cuda {

constexpr unsigned kThreads = 256;        // of a block
constexpr unsigned kBlocksPerSm = 4;      // enough loads in flight to fill NVLink and the memory
constexpr unsigned kMaxWords = 1u << 30;  // of one launch, so that 32 bits count them

struct CopyArguments {
  peerway::device::StridedCopy copy;
  unsigned long long* signal;  // null: no signal
  unsigned long long value;    // stored in *signal once everything is visible to all
  unsigned* finished;          // counts the blocks that are done; zero before and after each launch
};

}  // namespace pw::cuda
