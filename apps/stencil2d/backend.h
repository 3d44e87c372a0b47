// The device that --device names. The build decides which there are: backend_host.cpp or cuda.cu.
#ifndef STENCIL2D_BACKEND_H
#define STENCIL2D_BACKEND_H

#include <memory>

#include "device.h"

namespace stencil {

/// `local_rank` chooses the GPU, round robin. Throws std::runtime_error when this build or machine has none.
std::unique_ptr<Device> make_device(bool cuda, int local_rank);

}  // namespace stencil

#endif
