// peer/shm and peer/shm-nt: the CPU copies directly to or from host memory of the peer that it has mapped
// (memory from pw_region_allocate). `shm` copies through the caches; `shm-nt` uses non-temporal stores, which
// are faster once the data is larger than the caches. The route table says from which size on.
#pragma once

#include <cstdint>

#include "transport/path.h"

namespace pw {

class PeerShm final : public Path {
 public:
  explicit PeerShm(bool non_temporal)
      : Path(non_temporal ? Completes::at_start : Completes::at_start_by_cpu), non_temporal_(non_temporal) {}
  [[nodiscard]] std::string_view name() const override { return non_temporal_ ? "peer/shm-nt" : "peer/shm"; }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote&) override { return offer_for(pair); }
  [[nodiscard]] static Offer offer_for(const Pair& pair);
  [[nodiscard]] bool uses_mappings() const override { return true; }
  pw_status start(const Transfer& transfer) override;
  pw_status start_range(const RangeTransfer& range) override;

 private:
  bool non_temporal_;
};

}  // namespace pw
