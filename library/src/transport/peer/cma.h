// peer/cma: cross-memory attach. The kernel copies between this process and any host memory of a process of
// the same user, mapped or not, with one system call for up to 1,024 pieces.
#pragma once

#include <cstdint>

#include "transport/path.h"

namespace pw {

class PeerCma final : public Path {
 public:
  PeerCma();
  [[nodiscard]] std::string_view name() const override { return "peer/cma"; }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote&) override { return offer_for(pair); }
  [[nodiscard]] Offer offer_for(const Pair& pair) const;
  [[nodiscard]] bool uses_mappings() const override { return true; }
  pw_status start(const Transfer& transfer) override;

 private:
  std::string why_not_;  ///< why this system does not allow it; empty if it does
};

}  // namespace pw
