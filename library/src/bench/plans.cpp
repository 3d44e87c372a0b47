#include "bench/plans.h"

#include <string>

#include "base/status.h"

namespace pw::bench {
namespace {

struct FreeBuilder {
  void operator()(pw_plan_builder* builder) const { pw_plan_builder_free(builder); }
};
using Builder = std::unique_ptr<pw_plan_builder, FreeBuilder>;

Builder builder_of(const Ends& ends) {
  pw_plan_builder* builder = nullptr;
  need(pw_plan_builder_create(ends.context, pw_region_device(ends.source), &builder));
  return Builder(builder);
}

Plan prepared(const Builder& builder, bool alone) {
  pw_plan* plan = nullptr;
  need(pw_plan_builder_prepare(builder.get(), alone ? PW_PREPARE_ALONE : PW_PREPARE_COLLECTIVE, &plan));
  return Plan(plan);
}

void add_put(const Builder& builder, const Ends& ends, const pw_block& block) {
  const pw_notification notification{.signal = ends.far_arrived, .by = 1};
  need(pw_plan_builder_put(builder.get(), ends.far_target, &block, ends.source, &block, &notification));
}

Trip alone(Plan plan) {
  Trip trip;
  trip.push_back(std::move(plan));
  return trip;
}

/// Makes a plan that sends, or receives, or (without a partner) only takes part in preparing.
Plan message_plan(const Ends& ends, const pw_block& block, bool sends, bool receives) {
  const Builder builder = builder_of(ends);
  if (ends.partner >= 0 && sends)
    need(pw_plan_builder_send(builder.get(), ends.partner, kTag, ends.source, &block));
  if (ends.partner >= 0 && receives)
    need(pw_plan_builder_receive(builder.get(), ends.partner, kTag, ends.target, &block));
  return prepared(builder, false);
}

}  // namespace

Trip exchange_trip(const Ends& ends, const pw_block& block) {
  const Builder builder = builder_of(ends);
  add_put(builder, ends, block);
  need(pw_plan_builder_wait(builder.get(), ends.arrived, 1));
  return alone(prepared(builder, true));
}

Trip sendrecv_trip(const Ends& ends, const pw_block& block) {
  return alone(message_plan(ends, block, true, true));
}

Trip message_trip(const Ends& ends, const pw_block& block) {
  Trip trip;
  trip.push_back(message_plan(ends, block, ends.leads, !ends.leads));
  trip.push_back(message_plan(ends, block, !ends.leads, ends.leads));
  return trip;
}

Trip latency_trip(const Ends& ends, const pw_block& block) {
  const Builder puts = builder_of(ends), waits = builder_of(ends);
  add_put(puts, ends, block);
  need(pw_plan_builder_wait(waits.get(), ends.arrived, 1));
  Plan put = prepared(puts, true);
  Plan wait = prepared(waits, true);
  Trip trip;
  trip.push_back(std::move(ends.leads ? put : wait));
  trip.push_back(std::move(ends.leads ? wait : put));
  return trip;
}

Trip halo_trip(pw_context* context, const pw_grid& grid, const pw_array& array, pw_halo_parts parts) {
  pw_plan* plan = nullptr;
  need(pw_halo_create(context, &array, 1, &grid, parts, &plan));
  return alone(Plan(plan));
}

Start start_of(std::string_view name) {
  if (name == "host") return Start::host;
  if (name == "stream") return Start::stream;
  if (name == "graph") return Start::graph;
  throw Error(PW_INVALID_ARGUMENT,
              "plans are started from the host, on a stream or in a graph, not '" + std::string(name) + "'.");
}

PlanLoop::PlanLoop(pw_context* context, pw_device device, Trip trip, Start start, uint64_t batch,
                   uint64_t timeout_ns)
    : trip_(std::move(trip)), start_(start), batch_(batch), timeout_ns_(timeout_ns) {
  for (const Plan& plan : trip_) need(pw_plan_set_timeout(plan.get(), timeout_ns));
  if (start == Start::host) return;
  if (start == Start::graph) gpu_ = std::make_unique<Gpu>(device);
  stream_ = std::make_unique<Stream>(context, device);
  if (start == Start::graph) graph_ = Gpu::Graph(*gpu_, stream_->get(), [this] { batch_on_stream(); });
}

Samples PlanLoop::run(uint64_t samples) {
  if (gpu_ != nullptr) gpu_->enter();
  Samples taken = timed(samples, [this] {
    if (start_ == Start::host) {
      for (uint64_t i = 0; i < batch_; ++i) trip_on_host();
      return;
    }
    if (start_ == Start::graph) {
      graph_.launch(stream_->get());
    } else {
      batch_on_stream();
    }
    stream_->wait(timeout_ns_);
  });
  for (const Plan& plan : trip_) need(pw_plan_status(plan.get()));
  return taken;
}

void PlanLoop::trip_on_host() {
  for (const Plan& plan : trip_) {
    need(pw_plan_start(plan.get(), nullptr));
    need(pw_plan_finish(plan.get(), timeout_ns_));
  }
}

void PlanLoop::batch_on_stream() {
  for (uint64_t i = 0; i < batch_; ++i) {
    for (const Plan& plan : trip_) need(pw_plan_run_on(plan.get(), stream_->get()));
  }
}

}  // namespace pw::bench
