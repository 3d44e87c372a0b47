// nic:<name>: a card's own put and get on the memory itself.
#pragma once

#include <string>

#include "path/nic/nics.h"
#include "path/path.h"

namespace pw {

class NicDirect final : public Path {
 public:
  NicDirect(Surroundings surroundings, nic::Nic& nic) : Path(&surroundings.progress), nic_(nic) {}
  [[nodiscard]] std::string_view name() const override { return nic_.name(); }
  [[nodiscard]] Offer probe(const Pair& pair) const override;
  void prepare(const Transfer& transfer) override;
  pw_status start(const Transfer& transfer, const Raise* raise) override;
  pw_status start_run(const Run& run, const Raise* raise) override;
  pw_status raise(const Raise& raise) override;
  Mark mark(int rank) override { return nic_.engine() == nullptr ? 0 : nic_.engine()->mark(rank); }
  bool reached(int rank, Mark mark) override { return nic_.engine()->reached(rank, mark); }
  pw_status outcome(int rank, Mark mark) override { return nic_.engine()->outcome(rank, mark); }
  [[nodiscard]] Source* source() override { return nic_.engine(); }
  [[nodiscard]] bool asynchronous() const override { return true; }
  [[nodiscard]] bool raises(const Remote& signal) const override { return nic_.raises(signal); }

 private:
  pw_status move_blocks(const Transfer& transfer);

  nic::Nic& nic_;
};

}  // namespace pw
