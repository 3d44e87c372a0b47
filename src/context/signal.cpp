#include "context/signal.h"

#include <optional>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "team/wait.h"

namespace pw {

Signal::Signal(Context& context, int sender)
    : context_(context),
      sender_(sender),
      words_(sender == PW_ANY_RANK ? static_cast<uint32_t>(context.team().size()) : 1) {
  if (sender != PW_ANY_RANK && (sender < 0 || sender >= context.team().size()))
    throw Error(PW_OUT_OF_RANGE, format("peerway: a signal raised by rank {}; this team has ranks 0 to {}",
                                        sender, context.team().size() - 1));
  first_ = context.control().take_words(words_);
  try {
    slot_ = context.control().open_slot();
  } catch (...) {
    context.control().give_words(first_, words_);
    throw;
  }
}

Signal::~Signal() {
  context_.control().close_slot(slot_);
  context_.control().give_words(first_, words_);
}

uint64_t Signal::value() const noexcept {
  const std::atomic<uint64_t>* word = &context_.control().control().signal[first_];
  uint64_t sum = 0;
  for (uint32_t w = 0; w < words_; ++w) sum += word[w].load(std::memory_order_acquire);
  return sum;
}

pw_status Signal::wait(uint64_t value, uint64_t timeout_ns) const {
  if (this->value() >= value) return PW_OK;
  const uint64_t deadline = deadline_after(timeout_ns);
  ucx::Engine* const ucx = context_.ucx();
  StagingHelp help(context_.staging());
  std::optional<ucx::Polling> polling;
  if (ucx != nullptr) polling.emplace(*ucx);
  // A look of UCX costs more than a look at the word, which may as well come from this host.
  constexpr uint64_t kLooks = 16;
  uint64_t looks = 0;
  const pw_status status = wait_until(context_.team(), sender_, deadline, "a signal", [&] {
    help.look();
    if (polling && ++looks % kLooks == 0) polling->turn();
    return this->value() >= value || context_.closed();
  });
  if (status != PW_OK) return status;
  return this->value() >= value
             ? PW_OK
             : fail(PW_CLOSED, format("peerway: this context was closed while waiting for a signal to reach "
                                      "{}; it is at {}",
                                      value, this->value()));
}

std::vector<std::byte> Signal::key() const {
  Key key;
  key.type = KeyType::signal;
  key.job = context_.team().job();
  key.rank = context_.team().rank();
  key.slot = slot_;
  key.generation = context_.control().control().generation[slot_].load(std::memory_order_relaxed);
  key.bytes = sizeof(uint64_t);
  key.word = first_;
  key.sender = sender_;
  key.exported.address = reinterpret_cast<uint64_t>(&context_.control().control().signal[first_]);
  key.ucx = context_.ucx_key_of_signals();
  return pack(key);
}

}  // namespace pw
