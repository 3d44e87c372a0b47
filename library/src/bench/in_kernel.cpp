#include "bench/in_kernel.h"

#include <functional>
#include <numeric>
#include <vector>

#include "bench/stream.h"
#include "peerway/handles.h"

namespace pw::bench {

namespace {

/// Launches the kernel, waits for it, and reads the times that it measured: a number of cycles for each
/// sample, and the nanoseconds of all together.
Samples timed_kernel(const Gpu& gpu, pw_context* context, pw_stream stream,
                     const std::function<void()>& launch, const void* took, uint64_t samples) {
  Samples taken;
  const double cpu = process_cpu_ns();
  const uint64_t start = now_ns();
  launch();
  need(pw_stream_wait(context, stream, PW_FOREVER));  // each wait in it has a timeout
  taken.wall_ns = static_cast<double>(now_ns() - start);
  taken.cpu_ns = process_cpu_ns() - cpu;

  std::vector<uint64_t> cycles(samples + 1);
  gpu.copy(cycles.data(), took, cycles.size() * sizeof(uint64_t));
  const auto total = static_cast<double>(cycles.back());  // ns: the time to which cycles are scaled
  cycles.pop_back();
  const auto sum = static_cast<double>(std::accumulate(cycles.begin(), cycles.end(), uint64_t{0}));
  for (const uint64_t sample : cycles) taken.ns.push_back(static_cast<double>(sample) / sum * total);
  return taken;
}

}  // namespace

Samples run_in_kernel(const Gpu& gpu, pw_context* context, pw_stream stream, const KernelPingPong& work,
                      uint64_t samples, uint64_t batch) {
  pw_plan_handle out{}, in{};
  need(pw_plan_get_handle(work.out, &out));
  need(pw_plan_get_handle(work.in, &in));
  const auto kept = gpu.allocate((samples + 1) * sizeof(uint64_t));
  const std::vector<uint64_t> nothing(samples + 1, 0);
  gpu.copy(kept.get(), nothing.data(), nothing.size() * sizeof(uint64_t));
  int leads = work.leads ? 1 : 0;
  auto words = reinterpret_cast<uint64_t>(work.words);
  auto took = reinterpret_cast<uint64_t>(kept.get());
  unsigned long long count = work.compute_bytes / 16, all = samples, each = batch;
  void* arguments[] = {&out, &in, &leads, &words, &count, &all, &each, &took};
  const cuda::CUfunction kernel = gpu.kernel("bench_ping_pong");
  Samples taken = timed_kernel(
      gpu, context, stream, [&] { gpu.launch(kernel, work.blocks, work.threads, stream, arguments); },
      kept.get(), samples);
  need(pw_plan_status(work.out));
  need(pw_plan_status(work.in));
  return taken;
}

Samples run_packets(const Gpu& gpu, pw_context* context, pw_stream stream, const LanePingPong& work,
                    uint64_t samples, uint64_t batch) {
  pw_lane_handle out{}, in{};
  need(pw_plan_get_lane(work.out, PW_SEND, work.partner, work.tag, &out));
  need(pw_plan_get_lane(work.in, PW_RECEIVE, work.partner, work.tag, &in));
  const auto kept = gpu.allocate((samples + 1) * sizeof(uint64_t));
  int leads = work.leads ? 1 : 0;
  auto from = reinterpret_cast<uint64_t>(work.from);
  auto to = reinterpret_cast<uint64_t>(work.to);
  auto took = reinterpret_cast<uint64_t>(kept.get());
  unsigned long long bytes = work.bytes, epoch = work.epoch, all = samples, each = batch;
  void* arguments[] = {&out, &in, &leads, &from, &to, &bytes, &epoch, &all, &each, &took};
  const cuda::CUfunction kernel = gpu.kernel("bench_packets");
  Samples taken = timed_kernel(
      gpu, context, stream, [&] { gpu.launch(kernel, 1, work.threads, stream, arguments); }, kept.get(),
      samples);
  for (double& ns : taken.ns) ns /= static_cast<double>(batch);
  need(pw_plan_status(work.out));
  need(pw_plan_status(work.in));
  return taken;
}

}  // namespace pw::bench
