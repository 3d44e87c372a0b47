// nic:<name>: uses a NIC's own put and get on the memory itself.
#pragma once

#include <optional>
#include <string>

#include "transport/nic/nics.h"
#include "transport/path.h"

namespace pw {

class NicDirect final : public Path {
 public:
  explicit NicDirect(nic::Nic& nic) : Path(Completes::later), nic_(nic) {}
  [[nodiscard]] std::string_view name() const override { return nic_.name(); }
  /// A missing NIC is reported for pairs that it could have served, because the user configured it by name.
  [[nodiscard]] Offer offer(const Pair& pair, Region&, Remote& remote) override {
    std::string why_not = nic_.why_not(pair, remote);
    return why_not.empty() ? Offer::yes() : Offer::hindered(std::move(why_not));
  }
  void prepare(const Transfer& transfer) override;
  pw_status start(const Transfer& transfer) override;
  pw_status start_range(const RangeTransfer& range) override;
  bool can_start_and_store_word(const Transfer& transfer, Remote& signal) override;
  pw_status start_and_store_word(const Transfer& transfer, SignalTurn& turn) override;
  Mark mark(int rank) override { return nic_.engine() == nullptr ? 0 : nic_.engine()->mark(rank); }
  bool reached(int rank, Mark mark) override { return nic_.engine()->reached(rank, mark); }
  pw_status outcome(int rank, Mark mark) override { return nic_.engine()->outcome(rank, mark); }
  [[nodiscard]] Source* source() override { return nic_.engine(); }
  [[nodiscard]] bool can_store_word(const Remote& signal) const override {
    return nic_.can_store_word(signal);
  }
  [[nodiscard]] std::string why_cannot_store_word(const Remote& signal) const override {
    return std::string(name()) + ": " + nic_.why_not({}, signal);
  }
  pw_status store_word(Remote& signal, uint64_t value) override;
  std::shared_ptr<const uint64_t> fetch_word(Remote& signal) override;

 private:
  pw_status move(const RangeTransfer& range, const std::optional<nic::WordStore>& word);
  pw_status move_blocks(const Transfer& transfer);
  nic::WordStore word_of(Remote& signal, uint64_t value);

  nic::Nic& nic_;
};

}  // namespace pw
