#include "path/path.h"

#include "base/clock.h"
#include "base/format.h"

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

pw_status begin_raise(const Raise& raise, Path* through, std::unique_lock<std::mutex>& lock) {
  SignalSender& sender = *raise.signal->sender();
  lock = std::unique_lock(sender.mutex);
  if (sender.through == through) return PW_OK;
  if (sender.through != nullptr)
    if (const pw_status status = sender.through->flush(raise.signal->rank(), PW_FOREVER); status != PW_OK)
      return status;
  sender.through = through;
  return PW_OK;
}

pw_status raise_by_processor(const Raise& raise, Path* through) {
  if (raise.signal->word() == nullptr)
    return fail(PW_UNSUPPORTED, format("peerway: {} cannot raise a signal of rank {}, which is on another host",
                                       through->name(), raise.signal->rank()));
  std::unique_lock<std::mutex> lock;
  if (const pw_status status = begin_raise(raise, through, lock); status != PW_OK) return status;
  uint64_t& raised = raise.signal->sender()->raised;
  raised += raise.by;
  raise.signal->word()->store(raised, std::memory_order_release);
  return PW_OK;
}

pw_status Path::raise(const Raise& signal) {
  if (const pw_status status = flush(signal.signal->rank(), PW_FOREVER); status != PW_OK) return status;
  return raise_by_processor(signal, this);
}

}  // namespace pw
