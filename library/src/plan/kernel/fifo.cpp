#include "plan/kernel/fifo.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "base/format.h"
#include "memory/described.h"
#include "memory/pinned.h"
#include "plan/run/guard.h"

namespace pw {
namespace {

constexpr uint32_t kMostEntries = 65536;
// The kernels' own counters in device memory: two words, each on a cache line of its own.
constexpr uint64_t kCounterBytes = 256, kRoomAt = 128;

}  // namespace

PostedFifo::PostedFifo(Context& context, Device& device, uint32_t count, FifoLists lists,
                       std::shared_ptr<Guard> guard)
    : context_(context),
      count_(count),
      lists_(std::move(lists)),
      guard_(std::move(guard)),
      memory_(pinned_memory(device, kEntriesAt + count * sizeof(pw_fifo_entry))),
      counters_(new (memory_.get()) Counters{}),
      entries_(reinterpret_cast<pw_fifo_entry*>(static_cast<std::byte*>(memory_.get()) + kEntriesAt)) {
  for (const Remote* remote : lists_.remotes)
    if (remote->key.type == KeyType::region) require_writable(described(*remote));
  for (const Remote* remote : lists_.remotes)
    if (std::ranges::find(ranks_, remote->rank()) == ranks_.end()) ranks_.push_back(remote->rank());
}

Poll PostedFifo::poll() {
  if (cancelled_by_kernel() || cancelled(*guard_)) return Poll::idle;
  const uint64_t before = taken_;
  pw_fifo_entry entry;
  while (taken_ - before < count_ && take(entry)) {
    // The proxy handles an exception like a status.
    if (!ok_or_cancel(catch_errors([&] { return begin(entry); }))) return Poll::progress;
  }
  const bool progress = complete() || taken_ != before;
  return progress ? Poll::progress : taken_ > done_ ? Poll::waiting : Poll::idle;
}

// Takes marks after all entries that were taken so far, and counts these entries as done when the marks are
// reached. There is one set of marks at a time.
bool PostedFifo::complete() {
  if (taken_ == done_) return false;
  if (marked_ <= done_) {
    for (const int rank : ranks_) context_.add_marks(rank, marks_);
    deadline_ns_ = deadline_after(guard_->timeout_ns);
    marked_ = taken_;
  }
  if (!marks_.reached()) {
    if (now_ns() < deadline_ns_) return false;
    ok_or_cancel(fail(
        PW_TIMEOUT, format("the transfers of a FIFO with rank {} were not complete in time", marks_.rank())));
    return true;
  }
  if (!ok_or_cancel(catch_errors([&] { return marks_.outcome(); }))) return true;
  done_ = marked_;
  counters_->done.store(done_, std::memory_order_release);
  return true;
}

// Cancels the FIFO if a wait of a kernel timed out. A kernel that waited for room has not written its entry,
// so the entries after it would never be reached.
bool PostedFifo::cancelled_by_kernel() {
  const uint64_t report = guard_->report.load(std::memory_order_acquire);
  if (report == 0 || guard_->stop.load(std::memory_order_relaxed) != 0) return false;
  cancel(PW_TIMEOUT, format("entry {} of a FIFO waited {:.3g} s for the proxy without success; it "
                            "has taken {} entries of {}",
                            report >> 32, static_cast<double>(guard_->timeout_ns) * 1e-9, taken_, count_));
  return true;
}

bool PostedFifo::take(pw_fifo_entry& entry) {
  pw_fifo_entry& from = entries_[taken_ & (count_ - 1)];
  const auto load = [](unsigned long long& word, std::memory_order order = std::memory_order_relaxed) {
    return std::atomic_ref(word).load(order);
  };
  if (load(from.number, std::memory_order_acquire) != taken_ + 1) return false;
  entry.to_offset = load(from.to_offset);
  entry.from_offset = load(from.from_offset);
  entry.bytes = load(from.bytes);
  entry.by = load(from.by);
  entry.to_from = load(from.to_from);
  entry.signal = load(from.signal);
  counters_->taken.store(++taken_, std::memory_order_release);
  return true;
}

Remote& PostedFifo::remote_at(uint64_t place, KeyType type) const {
  const char* kind = type == KeyType::signal ? "signal" : "region";
  if (place >= lists_.remotes.size())
    throw Error(PW_OUT_OF_RANGE, format("entry {} of a FIFO names remote {}; it was made with {}", taken_,
                                        place, lists_.remotes.size()));
  if (lists_.remotes[place]->key.type != type)
    throw Error(
        PW_INVALID_ARGUMENT,
        format("entry {} of a FIFO names remote {} as its {}, but that remote is none", taken_, place, kind));
  return *lists_.remotes[place];
}

pw_status PostedFifo::begin(const pw_fifo_entry& entry) {
  Notification notification;
  if (entry.signal != PW_FIFO_NONE) {
    if (entry.by == 0)
      throw Error(PW_INVALID_ARGUMENT,
                  format("entry {} of a FIFO notifies a signal by 0; give at least 1", taken_));
    notification = {&remote_at(entry.signal, KeyType::signal), entry.by};
  }
  const bool notifies = notification.signal != nullptr;
  if (entry.bytes == 0) return notifies ? context_.notify(notification) : PW_OK;
  const uint64_t from = entry.to_from >> 32;
  if (from >= lists_.regions.size())
    throw Error(PW_OUT_OF_RANGE, format("entry {} of a FIFO names region {}; it was made with {}", taken_,
                                        from, lists_.regions.size()));
  Remote& to = remote_at(entry.to_from & 0xffffffff, KeyType::region);
  // transfer() checks the range against both regions.
  const RangeTransfer range{Op::put,           &to,        lists_.regions[from].get(), entry.to_offset,
                            entry.from_offset, entry.bytes};
  return notifies ? context_.transfer_range(range, notification) : context_.transfer_range(range);
}

bool PostedFifo::ok_or_cancel(pw_status status) {
  if (status == PW_OK) return true;
  const auto lost = std::ranges::find_if(ranks_, [&](int rank) { return context_.team().lost(rank); });
  if (status == PW_PEER_LOST && lost != ranks_.end())
    pw::cancel(*guard_, PW_PEER_LOST, *lost);
  else if (context_.closed())
    pw::cancel(*guard_, PW_CLOSED, -1);
  else
    cancel(status, last_error_message());
  return false;
}

void PostedFifo::cancel(pw_status why, const std::string& message) { pw::cancel(*guard_, why, message); }

void PostedFifo::fill(Device& device, pw_fifo_handle& handle) const {
  const auto seen = [&](void* address) { return static_cast<unsigned long long*>(device.as_seen(address)); };
  handle.version = PW_HANDLE_VERSION;
  handle.entries = static_cast<pw_fifo_entry*>(device.as_seen(entries_));
  handle.count = count_;
  handle.taken = seen(&counters_->taken);
  handle.done = seen(&counters_->done);
  handle.guard = seen_by(device, *guard_, guard_->timeout_ns);
}

Fifo::Fifo(Context& context, Device& device, uint32_t count, FifoLists lists)
    : context_(context), device_(device) {
  if (!std::has_single_bit(count) || count < 2 || count > kMostEntries)
    throw Error(PW_INVALID_ARGUMENT,
                format("a FIFO of {} entries; a power of two from 2 to {}", count, kMostEntries));
  std::vector<bool> depends(static_cast<size_t>(context.team().size()));
  for (const Remote* remote : lists.remotes) depends[static_cast<size_t>(remote->rank())] = true;
  guard_ = make_guard(context, device, settings::plan_timeout.nanoseconds());
  device_counters_ = context.allocate({device.id().kind, device.id().index}, kCounterBytes);
  device.clear(device_counters_->address(), kCounterBytes);
  served_ = std::make_shared<PostedFifo>(context, device, count, std::move(lists), guard_);
  on_close_ = context.on_close([guard = guard_] { cancel(*guard, PW_CLOSED, -1); });
  on_loss_ = context.team().on_loss([guard = guard_, depends](int rank) {
    if (depends[static_cast<size_t>(rank)]) cancel(*guard, PW_PEER_LOST, rank);
  });
  proxy_ = Proxy::of(context);
  proxy_->serve(served_);
}

Fifo::~Fifo() {
  on_loss_.reset();
  on_close_.reset();
  proxy_->forget(*served_);
}

pw_fifo_handle Fifo::handle() const {
  pw_fifo_handle handle{};
  served_->fill(device_, handle);
  handle.posted = reinterpret_cast<unsigned long long*>(device_counters_->address());
  handle.room = reinterpret_cast<unsigned long long*>(device_counters_->address() + kRoomAt);
  return handle;
}

pw_status Fifo::status() const { return status_of(*guard_, context_.team(), "FIFO"); }

}  // namespace pw
