// A build without CUDA.
#include <stdexcept>

#include "backend.h"
#include "host.h"

namespace stencil {

std::unique_ptr<Device> make_device(bool cuda, int) {
  if (cuda)
    throw std::runtime_error(
        "stencil2d: --device cuda, but this program was built for host only; build it with build.py --device "
        "cuda.");
  return std::make_unique<HostDevice>();
}

}  // namespace stencil
