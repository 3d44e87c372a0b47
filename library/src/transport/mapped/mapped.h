// mapped: the CPU itself stores into and loads from GPU memory that it has mapped (the idea of GDRCopy). No
// queue is in between, so this is quickest for a few bytes. Only the owner of GPU memory can map it, so this
// path serves GPU memory of this rank at one end and host memory that the CPU reaches at the other. Stores
// are fast; loads go over PCIe one by one and are slow.
#pragma once

#include "transport/mapped/maps.h"
#include "transport/transport.h"

namespace pw {

/// The memory in a pair that the CPU can reach.
struct MappedFacts {
  bool local = false;  ///< whether the CPU can access the local memory, which is on a GPU
  bool remote = false;
  std::string why_not;
};

class Mapped final : public Path {
 public:
  explicit Mapped(CpuMaps& maps) : Path(Completes::at_start), maps_(maps) {}
  [[nodiscard]] std::string_view name() const override { return "mapped"; }
  [[nodiscard]] Offer offer(const Pair& pair, Region& local, Remote&) override {
    return offer_for(pair, facts(pair, local));
  }
  [[nodiscard]] MappedFacts facts(const Pair& pair, Region& local);
  [[nodiscard]] static Offer offer_for(const Pair& pair, const MappedFacts& facts);
  pw_status start(const Transfer& transfer) override;

 private:
  CpuMaps& maps_;
};

class MappedTransport final : public Transport {
 public:
  std::vector<std::unique_ptr<Path>> paths() override;

 private:
  CpuMaps maps_;
};

}  // namespace pw
