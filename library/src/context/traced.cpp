// The operations of a context with events for `peerway trace`. The path is looked up after the operation,
// when its route is known and nobody waits for it.
#include "context/context.h"

namespace pw {
namespace {

int32_t tag_of(const Notification* notification) {
  return notification != nullptr && notification->by == 1 ? trace::tag_of(notification->signal->key) : -1;
}

pw_trace_kind kind_of(Op op) { return op == Op::get ? PW_TRACE_GET : PW_TRACE_PUT; }

/// Records the amount of a notification in an event of its own, unless it is 1.
void record_amount(const Notification* notification) {
  if (notification != nullptr && notification->by != 1)
    const trace::Operation notified(PW_TRACE_NOTIFY, notification->signal->rank(), notification->by,
                                    trace::tag_of(notification->signal->key));
}

}  // namespace

std::string_view Context::path_taken(Op op, route::ShapeClass shape, Region& local, Remote& remote,
                                     uint64_t bytes) {
  const Resolved* resolved = resolver_->find(op, shape, local, remote);
  if (resolved == nullptr || bytes == 0) return "none";
  const Path* path = resolved->path_of(bytes);
  return path != nullptr ? path->name() : resolved->route->split(resolved->route->lookup(bytes)).name;
}

pw_status Context::transfer_traced(const RangeTransfer& range, const Notification* notification) {
  trace::Operation operation(kind_of(range.op), range.remote->rank(), range.bytes, tag_of(notification));
  const pw_status status =
      notification == nullptr ? transfer_untraced(range) : transfer_untraced(range, *notification);
  operation.end();
  operation.by(status != PW_OK ? "failed"
                               : path_taken(range.op, route::ShapeClass::contiguous, *range.local,
                                            *range.remote, range.bytes));
  record_amount(notification);
  return status;
}

pw_status Context::start_traced(const Transfer& transfer, const Notification* notification, Marks* marks) {
  const uint64_t bytes = transfer.layout.shape.bytes();
  trace::Operation operation(kind_of(transfer.op), transfer.remote->rank(), bytes, tag_of(notification));
  const pw_status status = start_untraced(transfer, notification, marks);
  operation.end();
  operation.by(status != PW_OK ? "failed"
                               : path_taken(transfer.op, route::shape_class(transfer.layout.shape),
                                            *transfer.local, *transfer.remote, bytes));
  record_amount(notification);
  return status;
}

pw_status Context::notify(const Notification& notification) {
  if (!trace::recording()) return notify_untraced(notification);
  const trace::Operation operation(PW_TRACE_NOTIFY, notification.signal->rank(), notification.by,
                                   trace::tag_of(notification.signal->key));
  return notify_untraced(notification);
}

pw_status Context::flush(int rank, uint64_t timeout_ns) {
  if (!trace::recording()) return flush_untraced(rank, timeout_ns);
  const trace::Operation operation(PW_TRACE_FLUSH, rank == PW_ANY_RANK ? -1 : rank, 0);
  return flush_untraced(rank, timeout_ns);
}

}  // namespace pw
