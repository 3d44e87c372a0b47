// The C functions of plans and their builders. Each checks its arguments and turns exceptions into a status.
#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "context/request.h"
#include "plan/handle.h"
#include "plan/plan_request.h"
#include "trace/call.h"

namespace {

using pw::Error;
using pw::format;
using pw::given;

pw_status enqueue(pw_plan* plan, pw_stream stream, pw::PlanPart part, const pw::Condition& condition = {}) {
  const pw::DeviceId id = plan->plan->device().id();
  const bool same =
      stream.device.kind == id.kind && (stream.device.index == id.index || stream.device.index == -1);
  if (!same)
    return pw::fail(PW_INVALID_ARGUMENT,
                    format("a plan of {} was given a stream of {}", to_string(id),
                           to_string(pw::DeviceId{stream.device.kind, stream.device.index})));
  return plan->plan->enqueue(stream.queue, part, condition);
}

void check_by(uint64_t by) {
  if (by == 0) throw Error(PW_INVALID_ARGUMENT, "a wait for growth by 0; a signal grows by at least 1");
}

void check_prepare_mode(pw_prepare_mode mode) {
  if (mode != PW_PREPARE_COLLECTIVE && mode != PW_PREPARE_ALONE)
    throw Error(PW_INVALID_ARGUMENT,
                format("{} is not a way to prepare a plan; there are PW_PREPARE_COLLECTIVE ({}) and "
                       "PW_PREPARE_ALONE ({})",
                       static_cast<int>(mode), static_cast<int>(PW_PREPARE_COLLECTIVE),
                       static_cast<int>(PW_PREPARE_ALONE)));
}

void check_direction(pw_direction direction) {
  if (direction != PW_SEND && direction != PW_RECEIVE)
    throw Error(PW_INVALID_ARGUMENT,
                format("{} is not a direction; there are PW_RECEIVE ({}) and PW_SEND ({})",
                       static_cast<int>(direction), static_cast<int>(PW_RECEIVE), static_cast<int>(PW_SEND)));
}

}  // namespace

extern "C" {

pw_status pw_plan_builder_create(pw_context* context, pw_device device, pw_plan_builder** builder) {
  return pw::catch_errors(__func__, given(context, builder), [&] {
    *builder = new pw_plan_builder(context->open(), context->context->device_named(device));
    return PW_OK;
  });
}

pw_status pw_plan_builder_put(pw_plan_builder* builder, pw_remote* to, const pw_block* to_block,
                              const pw_region* from, const pw_block* from_block,
                              const pw_notification* notification) {
  return pw::catch_errors(__func__, given(builder, to, to_block, from, from_block), [&] {
    const pw::CheckedNotification checked(notification);
    builder->operations().put(pw::region_of(to), *pw::CheckedBlock(to_block), from->region,
                              *pw::CheckedBlock(from_block), checked.get());
    builder->uses.push_back(to->remote);
    if (notification != nullptr) builder->uses.push_back(notification->signal->remote);
    return PW_OK;
  });
}

pw_status pw_plan_builder_get(pw_plan_builder* builder, pw_region* to, const pw_block* to_block,
                              const pw_remote* from, const pw_block* from_block) {
  return pw::catch_errors(__func__, given(builder, to, to_block, from, from_block), [&] {
    builder->operations().get(pw::region_of(from), *pw::CheckedBlock(from_block), to->region,
                              *pw::CheckedBlock(to_block));
    builder->uses.push_back(from->remote);
    return PW_OK;
  });
}

pw_status pw_plan_builder_notify(pw_plan_builder* builder, const pw_notification* notification) {
  return pw::catch_errors(__func__, given(builder, notification), [&] {
    builder->operations().notify(pw::CheckedNotification(notification).value());
    builder->uses.push_back(notification->signal->remote);
    return PW_OK;
  });
}

pw_status pw_plan_builder_after(pw_plan_builder* builder, pw_signal* signal, uint64_t lead, uint64_t by) {
  return pw::catch_errors(__func__, given(builder, signal), [&] {
    check_by(by);
    builder->operations().after(*signal->signal, lead, by);
    builder->uses.push_back(signal->signal);
    return PW_OK;
  });
}

pw_status pw_plan_builder_wait(pw_plan_builder* builder, pw_signal* signal, uint64_t by) {
  return pw::catch_errors(__func__, given(builder, signal), [&] {
    check_by(by);
    builder->operations().wait(*signal->signal, by);
    builder->uses.push_back(signal->signal);
    return PW_OK;
  });
}

pw_status pw_plan_builder_send(pw_plan_builder* builder, int rank, int tag, const pw_region* from,
                               const pw_block* block) {
  return pw::catch_errors(__func__, given(builder, from, block), [&] {
    builder->operations().send(rank, tag, from->region, *pw::CheckedBlock(block));
    return PW_OK;
  });
}

pw_status pw_plan_builder_receive(pw_plan_builder* builder, int rank, int tag, pw_region* to,
                                  const pw_block* block) {
  return pw::catch_errors(__func__, given(builder, to, block), [&] {
    builder->operations().receive(rank, tag, to->region, *pw::CheckedBlock(block));
    return PW_OK;
  });
}

pw_status pw_plan_builder_prepare(pw_plan_builder* builder, pw_prepare_mode mode, pw_plan** plan) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(builder, plan), [&] {
    check_prepare_mode(mode);
    *plan = builder->prepare(mode == PW_PREPARE_ALONE).release();
    return PW_OK;
  });
}

pw_status pw_plan_builder_prepare_among(pw_plan_builder* builder, const int* ranks, size_t count,
                                        pw_plan** plan) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(builder, ranks, plan), [&] {
    *plan = builder->prepare_among({ranks, count}).release();
    return PW_OK;
  });
}

pw_status pw_plan_builder_free(pw_plan_builder* builder) {
  pw::release(builder);
  return PW_OK;
}

pw_status pw_plan_set_timeout(pw_plan* plan, uint64_t timeout_ns) {
  return pw::catch_errors(__func__, given(plan), [&] {
    plan->plan->set_timeout(timeout_ns);
    return PW_OK;
  });
}

pw_status pw_plan_leave_room(pw_plan* plan, int leave_room) {
  return pw::catch_errors(__func__, given(plan), [&] {
    plan->plan->leave_room(leave_room != 0);
    return PW_OK;
  });
}

pw_status pw_plan_start(pw_plan* plan, pw_request** request) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(plan), [&] {
    std::unique_ptr<pw_request> handle;  // before the start, which cannot be taken back
    if (request != nullptr) handle = std::make_unique<pw_request>(plan->context);
    uint64_t number = 0;
    const pw_status status = plan->plan->start(&number);
    if (status != PW_OK || request == nullptr) return status;
    handle->request = std::make_unique<pw::PlanRequest>(plan->plan, number);
    *request = handle.release();
    return PW_OK;
  });
}

pw_status pw_plan_finish(pw_plan* plan, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(plan), [&] { return plan->plan->finish(timeout_ns); });
}

pw_status pw_plan_start_on(pw_plan* plan, pw_stream stream) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(plan), [&] { return enqueue(plan, stream, pw::PlanPart::start); });
}

pw_status pw_plan_finish_on(pw_plan* plan, pw_stream stream) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(plan), [&] { return enqueue(plan, stream, pw::PlanPart::finish); });
}

pw_status pw_plan_run_on(pw_plan* plan, pw_stream stream) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(plan), [&] { return enqueue(plan, stream, pw::PlanPart::both); });
}

pw_status pw_plan_run_on_if(pw_plan* plan, pw_stream stream, const int* word, int value) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(plan, word),
                          [&] { return enqueue(plan, stream, pw::PlanPart::both, {word, value}); });
}

pw_status pw_plan_status(pw_plan* plan) {
  return pw::catch_errors(__func__, given(plan), [&] { return plan->plan->status(); });
}

pw_status pw_plan_describe(pw_plan* plan, const char** text) {
  return pw::catch_errors(__func__, given(plan, text), [&] {
    *text = plan->plan->describe().c_str();
    return PW_OK;
  });
}

pw_status pw_plan_get_handle(pw_plan* plan, pw_plan_handle* handle) {
  return pw::catch_errors(__func__, given(plan, handle), [&] { return plan->plan->handle(*handle); });
}

pw_status pw_plan_get_lane(pw_plan* plan, pw_direction direction, int rank, int tag, pw_lane_handle* handle) {
  return pw::catch_errors(__func__, given(plan, handle), [&] {
    check_direction(direction);
    return plan->plan->lane(direction == PW_SEND, rank, tag, *handle);
  });
}

pw_status pw_plan_get_all_reduce_handle(pw_plan* plan, pw_all_reduce_handle* handle) {
  return pw::catch_errors(__func__, given(plan, handle), [&] { return plan->plan->all_reduce(*handle); });
}

pw_status pw_plan_free(pw_plan* plan) {
  pw::release(plan);
  return PW_OK;
}

}  // extern "C"
