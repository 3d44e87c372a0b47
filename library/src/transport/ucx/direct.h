// ucx/direct: uses UCX's own put and get on the memory itself, whichever device it is on; with GPUDirect RDMA
// if the fabric supports it. This is the path to other hosts.
#pragma once

#include "transport/path.h"
#include "transport/ucx/ucx.h"

namespace pw {

class UcxDirect final : public Path {
 public:
  explicit UcxDirect(ucx::Ucx& ucx) : Path(Completes::later), ucx_(ucx) {}
  [[nodiscard]] std::string_view name() const override { return "ucx/direct"; }
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote& remote) override {
    return offer_for(pair, ucx_.facts(pair, remote));
  }
  [[nodiscard]] static Offer offer_for(const Pair& pair, const ucx::Facts& facts);
  void prepare(const Transfer& transfer) override;
  pw_status start(const Transfer& transfer) override;
  Mark mark(int rank) override { return ucx_.engine() == nullptr ? 0 : ucx_.engine()->mark(rank); }
  bool reached(int rank, Mark mark) override { return ucx_.engine()->reached(rank, mark); }
  pw_status outcome(int rank, Mark mark) override { return ucx_.engine()->outcome(rank, mark); }
  [[nodiscard]] Source* source() override { return ucx_.engine(); }
  [[nodiscard]] bool can_store_word(const Remote& signal) const override {
    return ucx_.can_store_word(signal);
  }
  [[nodiscard]] std::string why_cannot_store_word(const Remote& signal) const override {
    return "UCX: " + ucx_.facts({}, signal).why_not;
  }
  pw_status store_word(Remote& signal, uint64_t value) override;
  std::shared_ptr<const uint64_t> fetch_word(Remote& signal) override;

 private:
  ucx::Ucx& ucx_;
};

}  // namespace pw
