// The C functions that make handles for kernels: of regions to write to, and of signals to notify or wait
// for.
#include <memory>

#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "plan/kernel/in_kernel.h"
#include "team/wait.h"

namespace {

using pw::given;

pw::Remote& signal_of(const pw_remote* remote) {
  if (remote->remote->key.type != pw::KeyType::signal)
    throw pw::Error(PW_INVALID_ARGUMENT,
                    "kernels notify signals, and this is a region; import the key of a signal");
  return *remote->remote;
}

}  // namespace

extern "C" {

pw_status pw_remote_get_handle(pw_remote* remote, pw_device device, pw_remote_handle* handle) {
  return pw::catch_errors(__func__, given(remote, handle), [&] {
    pw::refuse_lost(remote->context->team(), remote->remote->rank());
    *handle = pw::handle_of(pw::region_of(remote), remote->context->device_named(device));
    return PW_OK;
  });
}

pw_status pw_remote_get_notify_handle(pw_remote* signal, pw_device device, pw_notify_handle* handle) {
  return pw::catch_errors(__func__, given(signal, handle), [&] {
    pw::Remote& notified = signal_of(signal);
    pw::refuse_lost(signal->context->team(), notified.rank());
    pw::Device& on = signal->context->device_named(device);
    auto notifications = std::static_pointer_cast<pw::KernelNotifications>(signal->in_kernels);
    if (notifications != nullptr && &notifications->device() != &on)
      return pw::fail(
          PW_INVALID_ARGUMENT,
          pw::format("kernels of {} have the handle of this signal of rank {}; give it back "
                     "with pw_remote_release_notify_handle before those of {} get one",
                     to_string(notifications->device().id()), notified.rank(), to_string(on.id())));
    if (notifications == nullptr)
      notifications = std::make_shared<pw::KernelNotifications>(*signal->context, notified, on);
    signal->in_kernels = notifications;
    *handle = notifications->handle();
    return PW_OK;
  });
}

pw_status pw_remote_release_notify_handle(pw_remote* signal) {
  return pw::catch_errors(__func__, given(signal), [&] {
    signal_of(signal);
    signal->in_kernels.reset();
    return PW_OK;
  });
}

pw_status pw_signal_get_handle(pw_signal* signal, pw_device device, uint64_t timeout_ns,
                               pw_signal_handle* handle) {
  return pw::catch_errors(__func__, given(signal, handle), [&] {
    pw::Device& on = signal->context->device_named(device);
    auto waits = std::static_pointer_cast<pw::KernelWaits>(signal->in_kernels);
    if (waits != nullptr && &waits->device() != &on)
      return pw::fail(PW_INVALID_ARGUMENT,
                      pw::format("kernels of {} have a handle of this signal already; those of {} need "
                                 "another signal",
                                 to_string(waits->device().id()), to_string(on.id())));
    if (waits == nullptr) waits = std::make_shared<pw::KernelWaits>(*signal->context, *signal->signal, on);
    signal->in_kernels = waits;
    *handle = waits->handle(timeout_ns);
    return PW_OK;
  });
}

pw_status pw_signal_status(const pw_signal* signal) {
  return pw::catch_errors(__func__, given(signal), [&] {
    const auto waits = std::static_pointer_cast<pw::KernelWaits>(signal->in_kernels);
    return waits == nullptr ? PW_OK : waits->status();
  });
}

}  // extern "C"
