// mapped: the processor itself stores into and loads from GPU memory that it has mapped (the idea of
// GDRCopy), with no queue in between, which is quickest for a few bytes. Only the owner of GPU memory can map
// it, so this path serves GPU memory of this rank at one end and host memory that the processor reaches at
// the other. Stores are fast; loads go over PCIe one by one and are slow.
#pragma once

#include "path/mapped/maps.h"
#include "path/path.h"

namespace pw {

class Mapped final : public Path {
 public:
  explicit Mapped(ProcessorMaps& maps) : Path(Completes::at_start), maps_(maps) {}
  [[nodiscard]] std::string_view name() const override { return "mapped"; }
  [[nodiscard]] Offer probe(const Pair& pair) const override;
  pw_status start(const Transfer& transfer) override;

 private:
  ProcessorMaps& maps_;
};

/// What the processor can reach of the pair: fills processor_maps_local, processor_maps_remote and
/// why_not_mapped. The rest of the pair must be known.
void mapped_facts(Pair& pair, Region& local, ProcessorMaps& maps);

}  // namespace pw
