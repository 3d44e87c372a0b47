#include "plan/kernel/in_kernel.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "memory/described.h"
#include "transport/path.h"

namespace pw {
namespace {

void check_has_kernels(const Device& device) {
  if (device.id().kind == PW_HOST)
    throw Error(PW_UNSUPPORTED, "the host has no kernels to give a handle to; name a GPU");
}

unsigned long long* as_word(Device& device, uint64_t* word) {
  return static_cast<unsigned long long*>(device.as_seen(word));
}

}  // namespace

pw_remote_handle handle_of(Remote& remote, Device& device) {
  check_has_kernels(device);
  require_writable(described(remote));
  std::string why_not = "its rank is on another host";
  if (!remote.same_host() || !device.reaches(remote.key.exported, why_not))
    throw Error(PW_UNSUPPORTED, format("kernels of {} cannot reach the region of rank {}: {}",
                                       to_string(device.id()), remote.rank(), why_not));
  const void* address = device.as_seen(remote.address_on(device));
  return {PW_HANDLE_VERSION, static_cast<unsigned char*>(const_cast<void*>(address)), remote.bytes()};
}

KernelNotifications::KernelNotifications(Context& context, Remote& signal, Device& device)
    : context_(context), signal_(signal), device_(device) {
  check_has_kernels(device);
  word_ = signal.word_on(device);
  if (word_ == nullptr)
    throw Error(PW_UNSUPPORTED,
                format("kernels of {} cannot notify a signal of rank {}, which is on another host",
                       to_string(device.id()), signal.rank()));
  access_ = std::make_unique<WordAccess>(device, 1);
  total_ = context.words(device).take(1);
  bool reserved = false;
  try {
    context.notifications().reserve(signal);
    reserved = true;
    access_->write(total_.address(), signal.sender()->notified);
  } catch (...) {
    if (reserved) Notifications::give_back(signal);
    context.words(device).give(total_);
    throw;
  }
}

KernelNotifications::~KernelNotifications() {
  try {
    signal_.sender()->notified = access_->read(total_.address());
  } catch (const Error& error) {  // the GPU has failed, so nobody can use the signal through it any more
    log_once(LogLevel::warning, error.what());
  }
  Notifications::give_back(signal_);
  context_.words(device_).give(total_);
}

pw_notify_handle KernelNotifications::handle() const {
  return {PW_HANDLE_VERSION, as_word(device_, word_), as_word(device_, total_.address())};
}

KernelWaits::KernelWaits(Context& context, const Signal& signal, Device& device)
    : context_(context), signal_(signal), device_(device) {
  check_has_kernels(device);
  words_ = signal.words_on(device, count_);
  guard_ = make_guard(context, device, settings::plan_timeout.nanoseconds());
  const int sender = signal.sender();
  on_close_ = context.on_close([guard = guard_] { cancel(*guard, PW_CLOSED, -1); });
  on_loss_ = context.team().on_loss([guard = guard_, sender](int rank) {
    if (sender == PW_ANY_RANK || sender == rank) cancel(*guard, PW_PEER_LOST, rank);
  });
}

pw_signal_handle KernelWaits::handle(uint64_t timeout_ns) {
  timeout_ns_ = timeout_ns;
  guard_->report.store(0, std::memory_order_release);
  return {PW_HANDLE_VERSION, count_, as_word(device_, words_), signal_.sender(),
          seen_by(device_, *guard_, timeout_ns)};
}

pw_status KernelWaits::status() const {
  cancel_if_lost(*guard_, context_.team(), signal_.sender());
  const Ended ended = end_of(*guard_);
  switch (ended.why) {
    case PW_OK:
      return PW_OK;
    case PW_PEER_LOST:
      return fail(PW_PEER_LOST, format("{}; waits of kernels for its signal end",
                                       context_.team().describe_loss(ended.rank)));
    case PW_TIMEOUT:
      return fail(PW_TIMEOUT, format("a kernel waited {:.3g} s in vain for rank {} to bring a signal to {}",
                                     static_cast<double>(timeout_ns_) * 1e-9, ended.rank, ended.of));
    default:
      return fail(ended.why, "the context was closed; the waits of its kernels end");
  }
}

}  // namespace pw
