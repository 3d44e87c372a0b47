// The C functions of streams and plans: checks at the border, and nothing thrown past it.
#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "context/request.h"
#include "plan/handle.h"
#include "plan/in_kernel.h"
#include "plan/plan_request.h"
#include "team/wait.h"
#include "trace/call.h"

namespace {

using pw::Error;
using pw::format;
using pw::given;

pw::Device& device_of(pw_context* context, pw_stream stream) {
  return context->context->device_named(stream.device);
}

// The same, checked. Throws Error.
pw::Device& owner_of(pw_context* context, pw_stream stream) {
  pw::Device& device = device_of(context, stream);
  std::string why_not;
  if (!device.owns_stream(stream.queue, why_not))
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: this is not a stream of {}: {}", to_string(device.id()), why_not));
  return device;
}

pw_status enqueue(pw_plan* plan, pw_stream stream, pw::PlanPart part) {
  const pw::DeviceId id = plan->plan->device().id();
  const bool same =
      stream.device.kind == id.kind && (stream.device.index == id.index || stream.device.index == -1);
  if (!same)
    return pw::fail(PW_INVALID_ARGUMENT,
                    format("peerway: a plan of {} was given a stream of {}", to_string(id),
                           to_string(pw::DeviceId{stream.device.kind, stream.device.index})));
  return plan->plan->enqueue(stream.queue, part);
}

// Who sleeps is woken by a call in the stream, which comes when all before it is done.
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

pw::Remote& signal_of(const pw_remote* remote) {
  if (remote->remote->key.type != pw::KeyType::signal)
    throw Error(PW_INVALID_ARGUMENT,
                "peerway: kernels raise signals, and this is a region; import the key of a signal");
  return *remote->remote;
}

void check_by(uint64_t by) {
  if (by == 0)
    throw Error(PW_INVALID_ARGUMENT, "peerway: a wait for growth by 0; a signal grows by at least 1");
}

}  // namespace

extern "C" {

pw_status pw_stream_create(pw_context* context, pw_device device, pw_stream* stream) {
  return pw::guard(__func__, given(context, stream), [&] {
    pw::Device& found = context->open()->device_named(device);
    *stream = {{found.id().kind, found.id().index}, found.make_stream()};
    return PW_OK;
  });
}

pw_status pw_stream_free(pw_context* context, pw_stream stream) {
  return pw::guard(__func__, given(context), [&] {
    device_of(context, stream).free_stream(stream.queue);
    return PW_OK;
  });
}

pw_status pw_stream_call(pw_context* context, pw_stream stream, void (*call)(void* user), void* user) {
  return pw::guard(__func__, given(context, call), [&] {
    pw::Device& device = owner_of(context, stream);
    return device.call(stream.queue, call, user);
  });
}

pw_status pw_stream_wait(pw_context* context, pw_stream stream, uint64_t timeout_ns) {
  return pw::guard(__func__, given(context), [&] {
    pw::Device& device = owner_of(context, stream);
    return wait_for_stream(*context->context, device, stream.queue, pw::deadline_after(timeout_ns));
  });
}

pw_status pw_plan_builder_create(pw_context* context, pw_device device, pw_plan_builder** builder) {
  return pw::guard(__func__, given(context, builder), [&] {
    *builder = new pw_plan_builder(context->open(), context->context->device_named(device));
    return PW_OK;
  });
}

pw_status pw_plan_builder_put(pw_plan_builder* builder, pw_remote* to, const pw_block* to_block,
                              const pw_region* from, const pw_block* from_block, const pw_raise* raise) {
  return pw::guard(__func__, given(builder, to, to_block, from, from_block), [&] {
    const pw::CheckedRaise checked(raise);
    builder->open().put(pw::region_of(to), *pw::CheckedBlock(to_block), from->region,
                        *pw::CheckedBlock(from_block), checked.get());
    builder->uses.push_back(to->remote);
    if (raise != nullptr) builder->uses.push_back(raise->signal->remote);
    return PW_OK;
  });
}

pw_status pw_plan_builder_get(pw_plan_builder* builder, pw_region* to, const pw_block* to_block,
                              const pw_remote* from, const pw_block* from_block) {
  return pw::guard(__func__, given(builder, to, to_block, from, from_block), [&] {
    builder->open().get(pw::region_of(from), *pw::CheckedBlock(from_block), to->region,
                        *pw::CheckedBlock(to_block));
    builder->uses.push_back(from->remote);
    return PW_OK;
  });
}

pw_status pw_plan_builder_raise(pw_plan_builder* builder, const pw_raise* raise) {
  return pw::guard(__func__, given(builder, raise), [&] {
    builder->open().raise(pw::CheckedRaise(raise).value());
    builder->uses.push_back(raise->signal->remote);
    return PW_OK;
  });
}

pw_status pw_plan_builder_after(pw_plan_builder* builder, pw_signal* signal, uint64_t lead, uint64_t by) {
  return pw::guard(__func__, given(builder, signal), [&] {
    check_by(by);
    builder->open().after(*signal->signal, lead, by);
    builder->uses.push_back(signal->signal);
    return PW_OK;
  });
}

pw_status pw_plan_builder_wait(pw_plan_builder* builder, pw_signal* signal, uint64_t by) {
  return pw::guard(__func__, given(builder, signal), [&] {
    check_by(by);
    builder->open().wait(*signal->signal, by);
    builder->uses.push_back(signal->signal);
    return PW_OK;
  });
}

pw_status pw_plan_builder_send(pw_plan_builder* builder, int rank, int tag, const pw_region* from,
                               const pw_block* block) {
  return pw::guard(__func__, given(builder, from, block), [&] {
    builder->open().send(rank, tag, from->region, *pw::CheckedBlock(block));
    return PW_OK;
  });
}

pw_status pw_plan_builder_receive(pw_plan_builder* builder, int rank, int tag, pw_region* to,
                                  const pw_block* block) {
  return pw::guard(__func__, given(builder, to, block), [&] {
    builder->open().receive(rank, tag, to->region, *pw::CheckedBlock(block));
    return PW_OK;
  });
}

pw_status pw_plan_builder_prepare(pw_plan_builder* builder, int alone, pw_plan** plan) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::guard(__func__, given(builder, plan), [&] {
    *plan = builder->prepare(alone != 0).release();
    return PW_OK;
  });
}

pw_status pw_plan_builder_prepare_among(pw_plan_builder* builder, const int* ranks, size_t count,
                                        pw_plan** plan) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::guard(__func__, given(builder, ranks, plan), [&] {
    *plan = builder->prepare_among({ranks, count}).release();
    return PW_OK;
  });
}

pw_status pw_plan_builder_free(pw_plan_builder* builder) {
  delete builder;
  return PW_OK;
}

pw_status pw_plan_set_timeout(pw_plan* plan, uint64_t timeout_ns) {
  return pw::guard(__func__, given(plan), [&] {
    plan->plan->set_timeout(timeout_ns);
    return PW_OK;
  });
}

pw_status pw_plan_start(pw_plan* plan, pw_request** request) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::guard(__func__, given(plan), [&] {
    std::unique_ptr<pw_request> made;  // before the start, which cannot be taken back
    if (request != nullptr) made = std::make_unique<pw_request>(plan->context);
    uint64_t number = 0;
    const pw_status status = plan->plan->start(&number);
    if (status != PW_OK || request == nullptr) return status;
    made->request = std::make_unique<pw::PlanRequest>(plan->plan, number);
    *request = made.release();
    return PW_OK;
  });
}

pw_status pw_plan_finish(pw_plan* plan, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::guard(__func__, given(plan), [&] { return plan->plan->finish(timeout_ns); });
}

pw_status pw_plan_start_on(pw_plan* plan, pw_stream stream) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::guard(__func__, given(plan), [&] { return enqueue(plan, stream, pw::PlanPart::start); });
}

pw_status pw_plan_finish_on(pw_plan* plan, pw_stream stream) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::guard(__func__, given(plan), [&] { return enqueue(plan, stream, pw::PlanPart::finish); });
}

pw_status pw_plan_run_on(pw_plan* plan, pw_stream stream) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::guard(__func__, given(plan), [&] { return enqueue(plan, stream, pw::PlanPart::both); });
}

pw_status pw_plan_status(pw_plan* plan) {
  return pw::guard(__func__, given(plan), [&] { return plan->plan->status(); });
}

pw_status pw_plan_get_handle(pw_plan* plan, pw_plan_handle* handle) {
  return pw::guard(__func__, given(plan, handle), [&] { return plan->plan->handle(*handle); });
}

pw_status pw_plan_get_lane(pw_plan* plan, int sends, int rank, int tag, pw_lane_handle* handle) {
  return pw::guard(__func__, given(plan, handle),
                   [&] { return plan->plan->lane(sends != 0, rank, tag, *handle); });
}

pw_status pw_plan_free(pw_plan* plan) {
  delete plan;
  return PW_OK;
}

pw_status pw_remote_get_handle(pw_remote* remote, pw_device device, pw_remote_handle* handle) {
  return pw::guard(__func__, given(remote, handle), [&] {
    *handle = pw::handle_of(pw::region_of(remote), remote->context->device_named(device));
    return PW_OK;
  });
}

pw_status pw_remote_get_raise_handle(pw_remote* signal, pw_device device, pw_raise_handle* handle) {
  return pw::guard(__func__, given(signal, handle), [&] {
    pw::Remote& raised = signal_of(signal);
    pw::Device& on = signal->context->device_named(device);
    auto raises = std::static_pointer_cast<pw::KernelRaises>(signal->in_kernels);
    if (raises != nullptr && &raises->device() != &on)
      return pw::fail(PW_INVALID_ARGUMENT,
                      format("peerway: kernels of {} have the handle of this signal of rank {}; give it back "
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
                      format("peerway: kernels of {} have a handle of this signal already; those of {} need "
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
