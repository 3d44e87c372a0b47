#include "context/signal.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

pw_status closed_at(uint64_t now, uint64_t wanted) {
  return fail(PW_CLOSED, format("this context was closed while waiting for a signal to reach {}; it is at {}",
                                wanted, now));
}

// Turns a timeout into a message that says what was waited for; the wait itself has reported all other
// failures.
pw_status explain_timeout(pw_status ended, int sender, uint64_t now, uint64_t wanted, uint64_t timeout_ns) {
  if (ended != PW_TIMEOUT) return ended;
  const std::string who = sender == PW_ANY_RANK ? "any rank" : format("rank {}", sender);
  return fail(PW_TIMEOUT, format("waited {:.3g} s for a signal that {} notifies to reach {}; it is at "
                                 "{}. Has that rank notified it often enough?",
                                 static_cast<double>(timeout_ns) * 1e-9, who, wanted, now));
}

}  // namespace

Signal::Signal(Context& context, int sender, Device& device)
    : context_(context),
      sender_(sender),
      words_(sender == PW_ANY_RANK ? static_cast<uint32_t>(context.team().size()) : 1) {
  if (sender != PW_ANY_RANK && (sender < 0 || sender >= context.team().size()))
    throw Error(PW_OUT_OF_RANGE, format("a signal notified by rank {}; this team has ranks 0 to {}", sender,
                                        context.team().size() - 1));
  if (device.id().kind == PW_HOST)
    first_ = context.control().take_words(words_);
  else
    device_words_ = context.words(device).take(words_);
  try {
    slot_ = context.control().open_slot();
  } catch (...) {
    give_words();
    throw;
  }
}

Signal::Signal(Context& context, int sender) : Signal(context, sender, host_device()) {}

Signal::~Signal() {
  context_.control().close_slot(slot_);
  give_words();
}

void Signal::give_words() {
  if (on_device())
    context_.words(device_words_.region->device()).give(device_words_);
  else
    context_.control().give_words(first_, words_);
}

uint64_t Signal::value() const {
  if (on_device()) return WordAccess(device_words_.region->device(), words_).read(device_words_.address());
  const std::atomic<uint64_t>* word = &context_.control().control().signal[first_];
  uint64_t sum = 0;
  for (uint32_t w = 0; w < words_; ++w) sum += word[w].load(std::memory_order_acquire);
  return sum;
}

pw_status Signal::wait(uint64_t value, uint64_t timeout_ns) const {
  if (!trace::recording()) return wait_now(value, timeout_ns);
  const trace::Operation operation(PW_TRACE_SIGNAL, sender_ == PW_ANY_RANK ? -1 : sender_, value,
                                   trace_tag());
  return wait_now(value, timeout_ns);
}

int32_t Signal::trace_tag() const {
  const uint64_t generation = context_.control().control().generation[slot_].load(std::memory_order_relaxed);
  return trace::tag_of_signal(slot_, generation);
}

pw_status Signal::wait_now(uint64_t value, uint64_t timeout_ns) const {
  const uint64_t deadline = deadline_after(timeout_ns);
  if (on_device()) return wait_on_device(value, timeout_ns);
  for (int polls = context_.progress().waiting().quick_polls(); polls > 0; --polls)
    if (this->value() >= value) return PW_OK;
  const pw_status status =
      context_.progress().wait({context_.team(), sender_, deadline, "a signal"}, nullptr,
                               [&] { return this->value() >= value || context_.closed(); });
  const uint64_t now = this->value();
  if (status != PW_OK) return explain_timeout(status, sender_, now, value, timeout_ns);
  return now >= value ? PW_OK : closed_at(now, value);
}

// Reads the words by copies, one after another, until the wait ends.
pw_status Signal::wait_on_device(uint64_t value, uint64_t timeout_ns) const {
  const uint64_t deadline_ns = deadline_after(timeout_ns);
  WordAccess access(device_words_.region->device(), words_);
  pw_status failed = access.begin(device_words_.address());
  if (failed != PW_OK) return failed;
  const auto poll = [&] {
    if (!access.done(failed)) return context_.closed();
    if (failed != PW_OK || access.sum() >= value || context_.closed()) return true;
    failed = access.begin(device_words_.address());
    return failed != PW_OK;
  };
  const pw_status status = context_.progress().wait({context_.team(), sender_, deadline_ns, "a signal"},
                                                    nullptr, poll, Wakes::perhaps);
  if (status != PW_OK) return explain_timeout(status, sender_, access.sum(), value, timeout_ns);
  if (failed != PW_OK) return failed;
  return access.sum() >= value ? PW_OK : closed_at(access.sum(), value);
}

uint64_t* Signal::words_on(Device& device, uint32_t& count) const {
  count = words_;
  if (on_device()) {
    const Device& owner = device_words_.region->device();
    if (&owner != &device)
      throw Error(PW_UNSUPPORTED,
                  format("a signal in the memory of {} cannot be waited for by plans and kernels of "
                         "{}; make it there",
                         to_string(owner.id()), to_string(device.id())));
    return device_words_.address();
  }
  if (device.id().kind != PW_HOST) context_.importer().pin_control(context_.team().rank(), device);
  return reinterpret_cast<uint64_t*>(&context_.control().control().signal[first_]);
}

std::vector<std::byte> Signal::key() const {
  Key key;
  key.type = KeyType::signal;
  key.rank = context_.team().rank();
  key.slot = slot_;
  key.generation = context_.control().control().generation[slot_].load(std::memory_order_relaxed);
  key.bytes = sizeof(uint64_t);
  key.word = first_;
  key.sender = sender_;
  if (on_device()) {
    key.device = device_words_.region->device().id();
    key.exported = device_words_.region->exported();
    key.exported.offset += device_words_.offset;
    key.exported.address += device_words_.offset;
    key.bytes = words_ * sizeof(uint64_t);
    key.word = kNoWord;
    return pack(key, context_.seal());
  }
  key.exported.address = reinterpret_cast<uint64_t>(&context_.control().control().signal[first_]);
  context_.attach_signals(key);
  return pack(key, context_.seal());
}

}  // namespace pw
