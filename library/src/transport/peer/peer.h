// peer: paths over memory of the peer that this process or its GPU accesses directly.
#pragma once

#include "transport/transport.h"

namespace pw {

class PeerTransport final : public Transport {
 public:
  std::vector<std::unique_ptr<Path>> paths() override;
};

}  // namespace pw
