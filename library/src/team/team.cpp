#include "team/team.h"

namespace pw {

namespace {

/// The exchange of a team of one: a rank with itself.
class ExchangeWithItself final : public Exchange {
 public:
  PeerMessages exchange(const PeerMessages& mine, uint64_t) override { return mine; }
  void abort(const Error&) override {}
  void on_abort(std::function<void(const Error&)>) override {}
};

}  // namespace

std::unique_ptr<Exchange> Team::begin_exchange(CallKind /*kind*/) {
  return std::make_unique<ExchangeWithItself>();
}

std::unique_ptr<Exchange> Team::begin_exchange_among(CallKind kind, std::span<const int> /*ranks*/) {
  return begin_exchange(kind);
}

}  // namespace pw
