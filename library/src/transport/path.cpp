#include "transport/path.h"

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

pw_status Path::start_range(const RangeTransfer& range) {
  Transfer transfer;
  transfer.op = range.op;
  transfer.remote = range.remote;
  transfer.local = range.local;
  transfer.remote_offset = range.remote_offset;
  transfer.local_offset = range.local_offset;
  transfer.layout.shape.block_bytes = range.bytes;
  return start(transfer);
}

pw_status wait_for(Marks& marks, Progress& progress, uint64_t deadline_ns) {
  if (marks.reached()) return PW_OK;
  const uint64_t since = now_ns();
  const pw_status waited = progress.wait(
      deadline_ns, "transfers to complete", marks.source(), [&] { return marks.reached(); },
      [&] { return marks.wakes(); });
  if (waited != PW_TIMEOUT) return waited;
  return fail(PW_TIMEOUT,
              format("waited {:.3g} s for transfers with rank {} to complete. They go on: flush again, "
                     "and see whether that rank is at work",
                     static_cast<double>(now_ns() - since) * 1e-9, marks.rank()));
}

pw_status Path::start_and_store_word(const Transfer&, SignalTurn&) {
  return fail(PW_INTERNAL, format("{} notifies no signals with its transfers", name()));
}

pw_status Path::store_word(Remote&, uint64_t) {
  return fail(PW_INTERNAL, format("{} stores no words of signals", name()));
}

std::shared_ptr<const uint64_t> Path::fetch_word(Remote&) {
  throw Error(PW_INTERNAL, format("{} reads no words of signals", name()));
}

}  // namespace pw
