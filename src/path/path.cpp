#include "path/path.h"

#include <sched.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"

namespace pw {

Device& worker(Region& local, Remote& remote) {
  if (local.device().id().kind != PW_HOST) return local.device();
  if (remote.key.device.kind == PW_HOST) return host_device();
  Device* any = nullptr;
  for (Device* device : devices()) {
    if (device->id().kind != remote.key.device.kind) continue;
    if (device->uuid() == remote.key.exported.device_uuid) return *device;
    if (any == nullptr) any = device;
  }
  return any != nullptr ? *any : host_device();
}

pw_status drain(Queue& queue) {
  pw_status status = PW_OK;
  while (!queue.idle(status)) sched_yield();
  return status;
}

pw_status begin_raise(const Raise& raise, Path* through, std::unique_lock<SpinLock>& lock) {
  SignalSender& sender = *raise.signal->sender();
  lock = std::unique_lock(sender.lock);
  if (sender.planned && !raise.by_plan)
    return fail(
        PW_INVALID_ARGUMENT,
        format("peerway: this signal of rank {} is raised by a plan of this rank; free the plan, or use "
               "another signal",
               raise.signal->rank()));
  if (sender.raised + raise.by < raise.by)
    return fail(PW_OUT_OF_RANGE,
                format("peerway: a raise by {} of a signal that this rank has raised to {} goes past 64 bits",
                       raise.by, sender.raised));
  if (sender.through == through) return PW_OK;
  if (sender.through != nullptr)
    if (const pw_status status = sender.through->flush(raise.signal->rank(), PW_FOREVER); status != PW_OK)
      return status;
  sender.through = through;
  return PW_OK;
}

pw_status raise_by_processor(const Raise& raise, Path* through) {
  std::unique_lock<SpinLock> lock;
  if (const pw_status status = begin_raise(raise, through, lock); status != PW_OK) return status;
  uint64_t& raised = raise.signal->sender()->raised;
  raised += raise.by;
  raise.signal->word()->store(raised, std::memory_order_release);
  wake(*raise.signal->sleepers());
  return PW_OK;
}

pw_status Path::start_run(const Run& run, const Raise* raise) {
  Transfer transfer;
  transfer.op = run.op;
  transfer.remote = run.remote;
  transfer.local = run.local;
  transfer.remote_offset = run.remote_offset;
  transfer.local_offset = run.local_offset;
  transfer.layout.shape.block_bytes = run.bytes;
  return start(transfer, raise);
}

pw_status wait_for(Marks& marks, Progress& progress, uint64_t deadline_ns) {
  if (marks.reached()) return marks.outcome();
  const uint64_t since = now_ns();
  const pw_status waited = progress.wait(
      deadline_ns, "transfers to complete", marks.source(), [&] { return marks.reached(); },
      [&] { return marks.wakes(); });
  if (waited == PW_OK) return marks.outcome();
  if (waited != PW_TIMEOUT) return waited;
  return fail(
      PW_TIMEOUT,
      format("peerway: waited {:.3g} s for transfers with rank {} to complete. They go on: flush again, "
             "and see whether that rank is at work",
             static_cast<double>(now_ns() - since) * 1e-9, marks.rank()));
}

pw_status Path::flush(int rank, uint64_t deadline_ns) {
  Marks marks;
  marks.add(*this, rank);
  return marks.reached() ? marks.outcome() : wait_for(marks, *progress_, deadline_ns);
}

pw_status Path::raise(const Raise& signal) {
  if (const pw_status status = flush(signal.signal->rank(), PW_FOREVER); status != PW_OK) return status;
  return raise_by_processor(signal, this);
}

}  // namespace pw
