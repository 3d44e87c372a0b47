#include "bench/async.h"

#include <algorithm>
#include <string>

#include "bench/in_kernel.h"
#include "bench/stream.h"

namespace pw::bench {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kManyThreads = 512;  ///< of the one block that does everything
constexpr unsigned kWord = 16;          ///< bytes of the kernel's words

unsigned blocks_for(uint64_t bytes) {
  return static_cast<unsigned>(std::max<uint64_t>(1, (bytes / kWord + kThreads - 1) / kThreads));
}

}  // namespace

Mode mode_of(std::string_view name) {
  if (name == "cpu") return Mode::cpu;
  if (name == "transmit") return Mode::transmit;
  if (name == "stream") return Mode::stream;
  if (name == "graph") return Mode::graph;
  if (name == "kernel") return Mode::kernel;
  throw Error(PW_INVALID_ARGUMENT,
              "async_pingpong has the modes cpu, transmit, stream, graph and kernel, not '" +
                  std::string(name) + "'.");
}

AsyncPingPong::AsyncPingPong(const Ends& ends, const pw_block& message, pw_region* buffer,
                             uint64_t compute_bytes, Mode mode, uint64_t batch, uint64_t timeout_ns)
    : ends_(ends),
      buffer_(buffer),
      compute_bytes_(compute_bytes),
      mode_(mode),
      batch_(batch),
      timeout_ns_(timeout_ns),
      stream_(ends.context, pw_region_device(buffer)) {
  Trip plans = latency_trip(ends, message);
  put_ = std::move(plans[ends.leads ? 0 : 1]);
  wait_ = std::move(plans[ends.leads ? 1 : 0]);
  for (pw_plan* plan : {put_.get(), wait_.get()}) need(pw_plan_set_timeout(plan, timeout_ns));
  if (pw_region_device(buffer).kind == PW_HOST) return;
  gpu_ = std::make_unique<Gpu>(pw_region_device(buffer));
  kernel_ = gpu_->kernel("bench_compute");
  if (mode == Mode::graph) graph_ = Gpu::Graph(*gpu_, stream_.get(), [this] { trips(); });
}

Samples AsyncPingPong::run(uint64_t samples) {
  if (gpu_ != nullptr) gpu_->enter();
  Samples taken;
  if (mode_ == Mode::kernel && gpu_ == nullptr) {
    taken = run_in_one(samples);
  } else if (mode_ == Mode::kernel) {
    const KernelPingPong kernel{put_.get(),     wait_.get(), ends_.leads, pw_region_address(buffer_),
                                compute_bytes_, 1,           kManyThreads};
    taken = run_in_kernel(*gpu_, ends_.context, stream_.get(), kernel, samples, batch_);
  } else {
    taken = timed(samples, [this] {
      mode_ == Mode::graph ? graph_.launch(stream_.get()) : trips();
      stream_.wait(timeout_ns_);
    });
  }
  need(pw_plan_status(put_.get()));
  need(pw_plan_status(wait_.get()));
  return taken;
}

void AsyncPingPong::trips() {
  for (uint64_t i = 0; i < batch_; ++i) trip();
}

void AsyncPingPong::trip() {
  if (ends_.leads) send();
  receive();
  compute();
  if (!ends_.leads) send();
}

void AsyncPingPong::receive() {
  if (receives_on_stream()) {
    need(pw_plan_run_on(wait_.get(), stream_.get()));
    return;
  }
  need(pw_plan_start(wait_.get(), nullptr));
  need(pw_plan_finish(wait_.get(), timeout_ns_));
}

void AsyncPingPong::compute() {
  if (gpu_ == nullptr) {
    need(pw_stream_call(ends_.context, stream_.get(), &touch, this));
  } else {
    auto words = reinterpret_cast<uint64_t>(pw_region_address(buffer_));
    unsigned long long count = compute_bytes_ / kWord;
    void* arguments[] = {&words, &count};
    gpu_->launch(kernel_, blocks_for(compute_bytes_), kThreads, stream_.get(), arguments);
  }
  if (mode_ == Mode::cpu) stream_.wait(timeout_ns_);
}

void AsyncPingPong::send() {
  if (mode_ != Mode::cpu) {
    need(pw_plan_run_on(put_.get(), stream_.get()));
    return;
  }
  need(pw_plan_start(put_.get(), nullptr));
  need(pw_plan_finish(put_.get(), timeout_ns_));
}

void AsyncPingPong::touch(void* self) {
  const auto* self_test = static_cast<AsyncPingPong*>(self);
  auto* words = static_cast<uint32_t*>(pw_region_address(self_test->buffer_));
  for (uint64_t i = 0; i < self_test->compute_bytes_ / sizeof *words; ++i) ++words[i];
}

/// One call on the host's stream, in which all plans are started and finished: the host's equivalent of a
/// persistent kernel.
Samples AsyncPingPong::run_in_one(uint64_t samples) {
  Samples taken;
  taken.ns.resize(samples);
  taken_ = &taken;
  failed_ = PW_OK;
  const double cpu = process_cpu_ns();
  const uint64_t start = now_ns();
  need(pw_stream_call(ends_.context, stream_.get(), &loop, this));
  stream_.wait(PW_FOREVER);  // each wait in it has a timeout
  taken.wall_ns = static_cast<double>(now_ns() - start);
  taken.cpu_ns = process_cpu_ns() - cpu;
  if (failed_ != PW_OK) throw Error(failed_, why_);
  return taken;
}

void AsyncPingPong::loop(void* self) {
  auto* ping_pong = static_cast<AsyncPingPong*>(self);
  const auto both = [ping_pong](pw_plan* plan) {
    need(pw_plan_start(plan, nullptr));
    need(pw_plan_finish(plan, ping_pong->timeout_ns_));
  };
  try {
    uint64_t last = now_ns();
    for (double& sample : ping_pong->taken_->ns) {
      for (uint64_t i = 0; i < ping_pong->batch_; ++i) {
        if (ping_pong->ends_.leads) both(ping_pong->put_.get());
        both(ping_pong->wait_.get());
        touch(self);
        if (!ping_pong->ends_.leads) both(ping_pong->put_.get());
      }
      const uint64_t now = now_ns();
      sample = static_cast<double>(now - last);
      last = now;
    }
  } catch (const Error& error) {
    ping_pong->failed_ = error.status();
    ping_pong->why_ = error.what();
  }
}

}  // namespace pw::bench
