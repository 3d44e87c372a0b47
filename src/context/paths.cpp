#include "context/paths.h"

#include "path/mapped/mapped.h"
#include "path/nic/direct.h"
#include "path/peer/cma.h"
#include "path/peer/gpu.h"
#include "path/peer/shm.h"
#include "path/staged/staged.h"
#include "path/ucx/direct.h"
#include "path/ucx/staged.h"

namespace pw {

std::vector<std::unique_ptr<Path>> make_paths(Surroundings surroundings, ucx::Ucx& ucx, const nic::Nics& nics,
                                              ProcessorMaps& maps) {
  std::vector<std::unique_ptr<Path>> paths;
  paths.push_back(std::make_unique<PeerShm>(false));
  paths.push_back(std::make_unique<PeerShm>(true));
  paths.push_back(std::make_unique<PeerCma>());
  paths.push_back(std::make_unique<PeerGpu>(Method::engine));
  paths.push_back(std::make_unique<PeerGpu>(Method::kernel));
  paths.push_back(std::make_unique<Mapped>(maps));
  for (const auto& nic : nics.all()) paths.push_back(std::make_unique<NicDirect>(*nic));
  paths.push_back(std::make_unique<UcxDirect>(ucx));
  paths.push_back(std::make_unique<UcxStaged>(surroundings, ucx));
  paths.push_back(std::make_unique<Staged>(surroundings));
  return paths;
}

}  // namespace pw
