// Put, get, notify and flush: checks the arguments, finds the route and hands over to paths. Small copies to
// memory that the CPU maps do not come here from C and C++: context.h does them. Python passes blocks, which
// all come here.
#include <bit>
#include <optional>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "context/context.h"
#include "memory/described.h"

namespace pw {

// Throws the error of join().
pw_status Context::refuse(const RangeTransfer& range) {
  pw_block remote{}, local{};
  remote.offset = range.remote_offset;
  local.offset = range.local_offset;
  remote.block_bytes = local.block_bytes = range.bytes;
  if (range.op == Op::put)
    join(remote, described(*range.remote), local, described(*range.local));
  else
    join(local, described(*range.local), remote, described(*range.remote));
  return PW_OK;  // not reached: the above throws
}

pw_status Context::transfer_blocks(Op op, Remote& remote, const pw_block& remote_block, Region& local,
                                   const pw_block& local_block, const Notification* notification,
                                   Marks* marks) {
  const Layout layout = op == Op::put ? join(remote_block, described(remote), local_block, described(local))
                                      : join(local_block, described(local), remote_block, described(remote));
  return start({op, &remote, &local, remote_block.offset, local_block.offset, layout}, notification, marks);
}

pw_status Context::transfer_in_bounds(const RangeTransfer& range, const Notification* notification) {
  if (range.bytes != 0) {
    if (const pw_status status = check(*range.remote, notification); status != PW_OK) return status;
    const Resolved& resolved =
        resolver_->resolve(range.op, route::ShapeClass::contiguous, *range.local, *range.remote);
    Path* const path = resolved.path_of(range.bytes);
    if (path != nullptr && (notification == nullptr || path->completes_at_start())) {
      record_start(range.remote->rank(), bit_of(*path));
      const pw_status status = path->start_range(range);
      if (status != PW_OK || notification == nullptr) return status;
      record_notification(*notification->signal);
      return notifications_.after(*path, range.remote->rank(), *notification);
    }
  }
  return start_untraced({range.op, range.remote, range.local, range.remote_offset, range.local_offset,
                         contiguous_layout(range.bytes)},
                        notification, nullptr);
}

pw_status Context::start(const Transfer& transfer, const Notification* notification, Marks* marks) {
  return trace::recording() ? start_traced(transfer, notification, marks)
                            : start_untraced(transfer, notification, marks);
}

pw_status Context::start_untraced(const Transfer& transfer, const Notification* notification, Marks* marks) {
  Remote& remote = *transfer.remote;
  if (const pw_status status = check(remote, notification); status != PW_OK) return status;
  const uint64_t bytes = transfer.layout.shape.bytes();
  if (bytes == 0) return notification != nullptr ? notify_untraced(*notification) : PW_OK;
  const Resolved& resolved =
      resolver_->resolve(transfer.op, route::shape_class(transfer.layout.shape), *transfer.local, remote);
  Path* const path = resolved.path_of(bytes);
  if (path == nullptr) {
    const route::ReadySplit& split = resolved.route->split(resolved.route->lookup(bytes));
    const pw_status status = start_split(resolved, split, transfer, notification);
    if (marks != nullptr)
      for (const uint32_t number : split.path) marks->add(*resolved.paths[number], remote.rank());
    return status;
  }
  record_start(remote.rank(), bit_of(*path));
  const pw_status status = notification == nullptr ? path->start(transfer)
                                                   : start_with_notification(*path, transfer, *notification);
  if (marks != nullptr) marks->add(*path, remote.rank());
  return status;
}

pw_status Context::start_with_notification(Path& path, const Transfer& transfer,
                                           const Notification& notification) {
  const int rank = transfer.remote->rank();
  record_notification(*notification.signal);
  record_start(notification.signal->rank(), bit_of(path));
  if (notification.signal->rank() == rank && path.can_start_and_store_word(transfer, *notification.signal)) {
    SignalTurn turn;
    if (const pw_status status = turn.begin(notification, &path); status != PW_OK) return status;
    if (turn.can_store_now()) return path.start_and_store_word(transfer, turn);
  }
  const pw_status status = path.start(transfer);
  return status == PW_OK ? notifications_.after(path, rank, notification) : status;
}

void Context::prepare(const Transfer& transfer) {
  const uint64_t bytes = transfer.layout.shape.bytes();
  if (bytes == 0) return;
  const Resolved& resolved = resolver_->resolve(transfer.op, route::shape_class(transfer.layout.shape),
                                                *transfer.local, *transfer.remote);
  const route::Choice& choice = resolved.route->lookup(bytes);
  if (choice.split < 0) return resolved.paths[choice.path]->prepare(transfer);
  for (const uint32_t path : resolved.route->split(choice).path) resolved.paths[path]->prepare(transfer);
}

pw_status Context::check_notification(const Remote& signal) {
  if (signal.is_device_signal())
    return fail(PW_UNSUPPORTED,
                format("the signal of rank {} lies in the memory of its {}: only plans of GPUs and "
                       "kernels notify it; for the host, make one with pw_signal_create",
                       signal.rank(), to_string(signal.key.device)));
  return check(signal);
}

// Checks for a lost rank first: such a rank has closed its regions, too, but will never send a new key.
pw_status Context::status_of(const Remote& remote) {
  if (team_.lost(remote.rank())) {
    record_start(remote.rank(), kAtStart);  // so that a flush reports the loss, too
    return fail(PW_PEER_LOST, team_.describe_loss(remote.rank()));
  }
  if (!remote.current())
    return fail(PW_STALE_KEY,
                format("the {} of rank {} behind this key was closed; ask that rank for a new key",
                       remote.key.type == KeyType::signal ? "signal" : "region", remote.rank()));
  if (closed()) return fail(PW_CLOSED, "this context was closed; make a new one");
  return PW_OK;
}

pw_status Context::start_split(const Resolved& resolved, const route::ReadySplit& split,
                               const Transfer& transfer, const Notification* notification) {
  const Layout& whole = transfer.layout;
  const uint64_t bytes = whole.shape.bytes();
  const uint64_t slice_bytes = whole.shape.contiguous() ? 0 : bytes / whole.shape.count[0];
  const route::SplitPieces pieces = split.divide(bytes, slice_bytes);
  const uint64_t unit = slice_bytes == 0 ? 1 : slice_bytes;
  // First starts the parts that progress by themselves, so that they run while another part occupies this
  // thread.
  for (const bool at_start : {false, true})
    for (const route::SplitPiece& piece : pieces) {
      Path* path = resolved.paths[split.path[piece.part]];
      if (path->completes_at_start() != at_start) continue;
      record_start(transfer.remote->rank(), bit_of(*path));
      Transfer part = transfer;
      uint64_t to = 0, from = 0;
      part.layout = slice(whole, piece.offset / unit, piece.bytes / unit, to, from);
      part.remote_offset += transfer.op == Op::put ? to : from;
      part.local_offset += transfer.op == Op::put ? from : to;
      std::optional<trace::Operation> traced;
      if (trace::recording()) {
        traced.emplace("piece of a split", PW_TRACE_PIECE);
        traced->of(piece.bytes, -1);
        traced->by(path->name());
      }
      if (const pw_status status = path->start(part); status != PW_OK) return status;
    }
  if (notification == nullptr) return PW_OK;
  record_notification(*notification->signal);
  Marks before;
  for (const uint32_t path : split.path) before.add(*resolved.paths[path], transfer.remote->rank());
  return notifications_.after(std::move(before), *notification);
}

pw_status Context::notify_untraced(const Notification& notification) {
  Remote& signal = *notification.signal;
  if (const pw_status status = check_notification(signal); status != PW_OK) return status;
  const uint64_t later =
      started_towards_[static_cast<size_t>(signal.rank())].load(std::memory_order_relaxed) &
      ~(kAtStart | kNotified);
  record_notification(signal);
  if (later == 0) [[likely]]
    return notifications_.after(Marks(), notification);
  return notify_behind(later, notification);
}

// The storing path needs no mark: its store comes after its own transfers anyway.
pw_status Context::notify_behind(uint64_t paths, const Notification& notification) {
  const Remote& signal = *notification.signal;
  const Path* const storing = signal.word() != nullptr ? nullptr : &resolver_->far_notifier(signal);
  Marks before;
  for (; paths != 0; paths &= paths - 1) {
    Path& path = *resolver_->paths()[static_cast<size_t>(std::countr_zero(paths))];
    if (&path != storing) before.add(path, signal.rank());
  }
  if (before.reached())
    if (const pw_status status = failures_.outcome(before); status != PW_OK) return status;
  return notifications_.after(std::move(before), notification);
}

pw_status Context::notify_at_once(const Notification& notification) {
  if (const pw_status status = check_notification(*notification.signal); status != PW_OK) return status;
  record_notification(*notification.signal);
  return notifications_.after(Marks(), notification);
}

pw_status Context::add_marks_of(int rank, Marks& marks) {
  if (rank != PW_ANY_RANK && (rank < 0 || rank >= team_.size()))
    return fail(PW_OUT_OF_RANGE,
                format("flush of rank {}; this team has ranks 0 to {}", rank, team_.size() - 1));
  if (rank != PW_ANY_RANK)
    add_marks(rank, marks);
  else
    for (int each = 0; each < team_.size(); ++each) add_marks(each, marks);
  return PW_OK;
}

void Context::add_marks(int rank, Marks& marks) {
  const uint64_t started = started_towards_[static_cast<size_t>(rank)].load(std::memory_order_relaxed);
  for (uint64_t paths = started & ~(kAtStart | kNotified); paths != 0; paths &= paths - 1)
    marks.add(*resolver_->paths()[static_cast<size_t>(std::countr_zero(paths))], rank);
  if ((started & kNotified) != 0) marks.add(notifications_, rank);
}

pw_status Context::flush_untraced(int rank, uint64_t timeout_ns) {
  Marks marks;
  if (const pw_status status = add_marks_of(rank, marks); status != PW_OK) return status;
  if (!marks.reached())  // avoids reading the clock if they are reached already
    if (const pw_status waited = wait_for(marks, progress_, deadline_after(timeout_ns)); waited != PW_OK)
      return waited;
  const pw_status ended = failures_.outcome(marks);
  const pw_status failure =
      failures_.take_for_flush(rank);  // includes failures that only a request has reported
  if (ended != PW_OK) return ended;
  return failure != PW_OK ? failure : check_not_lost(rank);
}

pw_status Context::check_not_lost(int rank) const {
  const auto check = [&](int each) {
    return team_.lost(each) ? fail(PW_PEER_LOST, team_.describe_loss(each)) : PW_OK;
  };
  if (rank != PW_ANY_RANK) return check(rank);
  for (int each = 0; each < team_.size(); ++each)
    if (started_towards_[static_cast<size_t>(each)].load(std::memory_order_relaxed) != 0)
      if (const pw_status status = check(each); status != PW_OK) return status;
  return PW_OK;
}

}  // namespace pw
