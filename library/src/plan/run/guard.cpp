#include "plan/run/guard.h"

#include "base/format.h"
#include "base/status.h"
#include "context/context.h"
#include "memory/pinned.h"
#include "memory/words.h"
#include "team/wait.h"

namespace pw {
namespace settings {

const SecondsSetting plan_timeout{
    "plan_timeout", "60",
    "Limit of each wait of a plan, after which it is cancelled; the death of a peer ends it earlier."};

}  // namespace settings

namespace {

constexpr unsigned kTimedOut = 2;                   // as peerway::device::detail::Deadline reports it
constexpr uint64_t kExplained = uint64_t{1} << 40;  // flag in the stop word: Guard::why has a message

uint64_t stop_word(pw_status why, int rank) {
  return static_cast<uint64_t>(why) | static_cast<uint64_t>(rank + 1) << 8;
}

int rank_in(uint64_t word) { return static_cast<int>(word >> 8 & 0xffffff) - 1; }

}  // namespace

std::shared_ptr<Guard> make_guard(Context& context, Device& device, uint64_t timeout_ns) {
  static_assert(sizeof(Guard) <= PinnedPool::kSlotBytes);
  const std::shared_ptr<void> slot = context.pinned(device).take();
  auto* guard = new (slot.get()) Guard{};
  guard->timeout_ns = timeout_ns;
  WordPool& words = context.words(device);
  const DeviceWords polled = words.take(1);
  guard->polled = polled.address();
  return {guard, [slot, polled, &words](Guard*) { words.give(polled); }};
}

void cancel(Guard& guard, pw_status why, int rank) {
  uint64_t none = 0;
  guard.stop.compare_exchange_strong(none, stop_word(why, rank), std::memory_order_acq_rel);
}

void cancel_if_lost(Guard& guard, const Team& team, int rank) {
  if (const int lost = lost_of(team, rank); lost >= 0) cancel(guard, PW_PEER_LOST, lost);
}

Ended end_of(const Guard& guard) {
  const uint64_t stop = guard.stop.load(std::memory_order_acquire);
  if (stop != 0) return {static_cast<pw_status>(stop & 0xff), rank_in(stop), 0};
  const uint64_t report = guard.report.load(std::memory_order_acquire);
  if (report == 0) return {};
  return {(report & 0xff) == kTimedOut ? PW_TIMEOUT : PW_INTERNAL, rank_in(report), report >> 32};
}

pw_guard seen_by(Device& device, const Guard& guard, uint64_t timeout_ns) {
  const auto at = [&device](const void* word) {
    return static_cast<unsigned long long*>(device.as_seen(const_cast<void*>(word)));
  };
  return {at(&guard.stop), at(&guard.report), at(guard.polled), timeout_ns};
}

void cancel(Guard& guard, pw_status why, const std::string& message) {
  if (guard.stop.load(std::memory_order_acquire) != 0) return;
  const size_t length = message.copy(guard.why, sizeof guard.why - 1);
  guard.why[length] = 0;
  uint64_t none = 0;
  guard.stop.compare_exchange_strong(none, stop_word(why, -1) | kExplained, std::memory_order_acq_rel);
}

namespace {

// The message for a wait that timed out. If it waited for the proxy, its report names no rank; the guard then
// says which rank the proxy waits for.
std::string text_of_timeout(const Guard& guard, const Ended& end) {
  const int rank = end.rank >= 0 ? end.rank : guard.awaited.load() - 1;
  const std::string waited = format("epoch {} of a plan waited {:.3g} s in vain for ", end.of,
                                    static_cast<double>(guard.timeout_ns) * 1e-9);
  if (rank < 0)
    return waited +
           "the proxy, which is busy with other transfers; the plan is cancelled. A longer "
           "plan_timeout may help";
  return waited +
         format("rank {}; the plan is cancelled. Has that rank started its plan as many times?", rank);
}

}  // namespace

pw_status status_of(const Guard& guard, const Team& team, const char* object) {
  const Ended end = end_of(guard);
  if ((guard.stop.load(std::memory_order_relaxed) & kExplained) != 0)
    return fail(end.why, format("{}; the {} is cancelled", guard.why, object));
  switch (end.why) {
    case PW_OK:
      return PW_OK;
    case PW_TIMEOUT:
      return fail(PW_TIMEOUT, text_of_timeout(guard, end));
    case PW_PEER_LOST:
      return fail(PW_PEER_LOST,
                  format("{}; the {} that depends on it is cancelled", team.describe_loss(end.rank), object));
    case PW_CLOSED:
      return fail(PW_CLOSED, format("the context was closed; its {}s are cancelled", object));
    default:
      return fail(end.why, format("the {} was cancelled by a failure of the path that serves it", object));
  }
}

}  // namespace pw
