// The C functions of streams.
#include <memory>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"

namespace {

using pw::given;

pw::Device& device_of(pw_context* context, pw_stream stream) {
  return context->context->device_named(stream.device);
}

// The same, after checking that this is a stream of the device. Throws Error.
pw::Device& owner_of(pw_context* context, pw_stream stream) {
  pw::Device& device = device_of(context, stream);
  std::string why_not;
  if (!device.owns_stream(stream.queue, why_not))
    throw pw::Error(PW_INVALID_ARGUMENT,
                    pw::format("this is not a stream of {}: {}", to_string(device.id()), why_not));
  return device;
}

// Before the caller sleeps, it enqueues a call in the stream. The call runs when all work before it is done,
// and wakes the caller.
pw_status wait_for_stream(pw::Context& context, pw::Device& device, void* stream, uint64_t deadline_ns) {
  pw_status failed = PW_OK;
  const auto notice = std::make_shared<pw::Notice>(context.waiting());
  const auto ask = [&] {
    void* user = pw::Notice::hand_out(notice);
    if (device.call(stream, pw::Notice::give, user) == PW_OK) return pw::Wakes::always;
    pw::Notice::take_back(user);
    return pw::Wakes::perhaps;
  };
  const pw::Team& team = context.team();
  const pw_status waited = context.progress().wait(
      {team, team.rank(), deadline_ns, "a stream"}, nullptr,
      [&] { return notice->given() || device.stream_idle(stream, failed); }, ask);
  return waited != PW_OK ? waited : failed;
}

}  // namespace

extern "C" {

pw_status pw_stream_create(pw_context* context, pw_device device, pw_stream* stream) {
  return pw::catch_errors(__func__, given(context, stream), [&] {
    pw::Device& owner = context->open()->device_named(device);
    *stream = {{owner.id().kind, owner.id().index}, owner.make_stream()};
    return PW_OK;
  });
}

pw_status pw_stream_free(pw_context* context, pw_stream stream) {
  if (pw::in_forked_child()) return PW_OK;
  return pw::catch_errors(__func__, given(context), [&] {
    device_of(context, stream).free_stream(stream.queue);
    return PW_OK;
  });
}

pw_status pw_stream_call(pw_context* context, pw_stream stream, void (*call)(void* user), void* user) {
  return pw::catch_errors(__func__, given(context, call), [&] {
    pw::Device& device = owner_of(context, stream);
    return device.call(stream.queue, call, user);
  });
}

pw_status pw_stream_wait(pw_context* context, pw_stream stream, uint64_t timeout_ns) {
  return pw::catch_errors(__func__, given(context), [&] {
    pw::Device& device = owner_of(context, stream);
    return wait_for_stream(*context->context, device, stream.queue, pw::deadline_after(timeout_ns));
  });
}

}  // extern "C"
