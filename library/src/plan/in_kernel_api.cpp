// The C functions of what kernels are given besides plans: regions to write to, signals to raise and wait
// for.
#include <memory>

#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "plan/in_kernel.h"
#include "team/wait.h"

namespace {

using pw::given;

pw::Remote& signal_of(const pw_remote* remote) {
  if (remote->remote->key.type != pw::KeyType::signal)
    throw pw::Error(PW_INVALID_ARGUMENT,
                    "kernels raise signals, and this is a region; import the key of a signal");
  return *remote->remote;
}

}  // namespace

extern "C" {

pw_status pw_remote_get_handle(pw_remote* remote, pw_device device, pw_remote_handle* handle) {
  return pw::guard(__func__, given(remote, handle), [&] {
    pw::refuse_lost(remote->context->team(), remote->remote->rank());
    *handle = pw::handle_of(pw::region_of(remote), remote->context->device_named(device));
    return PW_OK;
  });
}

pw_status pw_remote_get_raise_handle(pw_remote* signal, pw_device device, pw_raise_handle* handle) {
  return pw::guard(__func__, given(signal, handle), [&] {
    pw::Remote& raised = signal_of(signal);
    pw::refuse_lost(signal->context->team(), raised.rank());
    pw::Device& on = signal->context->device_named(device);
    auto raises = std::static_pointer_cast<pw::KernelRaises>(signal->in_kernels);
    if (raises != nullptr && &raises->device() != &on)
      return pw::fail(PW_INVALID_ARGUMENT,
                      pw::format("kernels of {} have the handle of this signal of rank {}; give it back "
                                 "with pw_remote_release_raise_handle before those of {} get one",
                                 to_string(raises->device().id()), raised.rank(), to_string(on.id())));
    if (raises == nullptr) raises = std::make_shared<pw::KernelRaises>(*signal->context, raised, on);
    signal->in_kernels = raises;
    *handle = raises->handle();
    return PW_OK;
  });
}

pw_status pw_remote_release_raise_handle(pw_remote* signal) {
  return pw::guard(__func__, given(signal), [&] {
    signal_of(signal);
    signal->in_kernels.reset();
    return PW_OK;
  });
}

pw_status pw_signal_get_handle(pw_signal* signal, pw_device device, uint64_t timeout_ns,
                               pw_signal_handle* handle) {
  return pw::guard(__func__, given(signal, handle), [&] {
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
  return pw::guard(__func__, given(signal), [&] {
    const auto waits = std::static_pointer_cast<pw::KernelWaits>(signal->in_kernels);
    return waits == nullptr ? PW_OK : waits->status();
  });
}

}  // extern "C"
