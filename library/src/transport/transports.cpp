// The list of transports. It is a file of its own, so that another list can replace it.
#include "transport/mapped/mapped.h"
#include "transport/nic/nics.h"
#include "transport/peer/peer.h"
#include "transport/staged/staged.h"
#include "transport/transport.h"
#include "transport/ucx/ucx.h"

namespace pw {

std::vector<PathFamily> path_families() { return {nic::path_family()}; }

std::vector<std::unique_ptr<Transport>> make_transports(const Surroundings& surroundings) {
  std::vector<std::unique_ptr<Transport>> all;
  all.push_back(std::make_unique<PeerTransport>());
  all.push_back(std::make_unique<MappedTransport>());
  all.push_back(std::make_unique<nic::Nics>(surroundings));
  all.push_back(std::make_unique<ucx::Ucx>(surroundings));
  all.push_back(std::make_unique<StagedTransport>(surroundings));
  return all;
}

}  // namespace pw
