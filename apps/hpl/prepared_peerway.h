// Messages that a stream starts, as plans that are prepared once. A plan's length is fixed: each slot has
// plans of kLengths lengths, and a message uses the shortest that it fits into. That also sends what follows
// it in the slot, at most a sixteenth of the slot.
#ifndef HPL_PREPARED_PEERWAY_H
#define HPL_PREPARED_PEERWAY_H

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "comm.h"
#include "counter_peerway.h"

namespace hpl {

class Prepared {
 public:
  /// Return ranges for puts into a peer's pool: `There` that in the rank's pool, `Here` that in this rank's.
  using There = std::function<peerway::Context::Far(int rank, size_t offset, size_t bytes)>;
  using Here = std::function<peerway::Context::Local(size_t offset, size_t bytes)>;

  /// Collective. `device` is the pool's device.
  Prepared(peerway::Team& team, peerway::Context& context, peerway::Timeout timeout,
           const std::vector<int>& group, const Slots& slots, pw_device device, const There& there,
           const Here& here)
      : context_(context), timeout_(timeout), group_(group), slots_(slots), device_(device) {
    arrivals_ = make_counters(team, context, group, each(), timeout);
    for (size_t i = 0; i < arrivals_.size(); ++i) {
      const int rank = group[i / each()];
      const size_t offset = slots.first + i % each() / kLengths * slots.bytes;
      const size_t bytes = length(i % kLengths);
      auto& plan = plans_.emplace_back();
      if (rank == team.rank()) continue;
      plan.emplace(
          context.plan(device)
              .put(there(rank, offset, bytes), here(offset, bytes), peerway::notify(*arrivals_[i].theirs))
              .prepare_alone());
      plan->set_timeout(timeout);
    }
    if (device.kind == PW_HOST) own_.emplace(context.stream(device));
  }

  void expect(int from, size_t offset, size_t bytes) {
    expected_[from].push_back(index(from, offset, bytes));
  }
  [[nodiscard]] bool arrived(int from) { return arrivals_[expected_[from].front()].arrived(); }
  void receive(int from) {
    arrivals_[expected_[from].front()].take(timeout_);
    expected_[from].pop_front();
  }

  void start(void* queue, int to, size_t offset, size_t bytes) {
    const pw_stream stream = own_ ? own_->get() : pw_stream{device_, queue};
    peerway::Plan& plan = *plans_[index(to, offset, bytes)];
    peerway::check(plan.run(stream));
    started_.insert(&plan);
    queues_.insert(stream.queue);
  }
  /// Returns once the memory of started messages may change.
  void settle() {
    for (void* queue : queues_)
      peerway::check(static_cast<peerway::Status>(
          pw_stream_wait(context_.get(), {device_, queue}, static_cast<uint64_t>(timeout_.count()))));
    for (const peerway::Plan* plan : started_) peerway::check(plan->status());
    queues_.clear();
    started_.clear();
  }

 private:
  static constexpr size_t kLengths = 16;

  [[nodiscard]] size_t each() const { return static_cast<size_t>(slots_.count) * kLengths; }
  /// Returns a length of a slot: a multiple of the same share, in lines of 64 bytes.
  [[nodiscard]] size_t length(size_t number) const {
    return number + 1 == kLengths ? slots_.bytes : (number + 1) * (slots_.bytes / kLengths / 64 * 64);
  }
  [[nodiscard]] size_t index(int rank, size_t offset, size_t bytes) const {
    const auto peer = static_cast<size_t>(std::find(group_.begin(), group_.end(), rank) - group_.begin());
    size_t number = 0;
    while (number + 1 < kLengths && length(number) < bytes) ++number;
    return peer * each() + (offset - slots_.first) / slots_.bytes * kLengths + number;
  }

  peerway::Context& context_;
  peerway::Timeout timeout_;
  std::vector<int> group_;
  Slots slots_;
  pw_device device_;
  std::optional<peerway::Stream> own_;  // for the CPU, which has no queue
  std::vector<Counter> arrivals_;       // for each rank, slot and length
  std::vector<std::optional<peerway::Plan>> plans_;
  std::map<int, std::deque<size_t>> expected_;
  std::set<void*> queues_;  // queues that have started something since settle()
  std::set<peerway::Plan*> started_;
};

}  // namespace hpl

#endif
