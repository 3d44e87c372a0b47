#include "transport/peer/peer.h"

#include "transport/peer/cma.h"
#include "transport/peer/gpu.h"
#include "transport/peer/shm.h"

namespace pw {

std::vector<std::unique_ptr<Path>> PeerTransport::paths() {
  std::vector<std::unique_ptr<Path>> paths;
  paths.push_back(std::make_unique<PeerShm>(false));
  paths.push_back(std::make_unique<PeerShm>(true));
  paths.push_back(std::make_unique<PeerCma>());
  paths.push_back(std::make_unique<PeerGpu>(CopyBy::engine));
  paths.push_back(std::make_unique<PeerGpu>(CopyBy::kernel));
  return paths;
}

}  // namespace pw
