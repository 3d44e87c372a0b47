// Maps device memory through its dma-buf, which needs no kernel module besides the driver's own.
#pragma once

#include <string>

namespace pw::cuda {

/// Returns why mmap of a dma-buf failed with that errno, and what to do.
std::string why_no_dmabuf_map(int error);

}  // namespace pw::cuda
