// The list of transports. It is compiled alone, so that another list can take its place.
#include "path/mapped/mapped.h"
#include "path/nic/nics.h"
#include "path/peer/peer.h"
#include "path/staged/service.h"
#include "path/transport.h"
#include "path/ucx/ucx.h"

namespace pw {

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
