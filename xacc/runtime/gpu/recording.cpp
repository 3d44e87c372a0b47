#include "xacc/runtime/gpu/recording.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "xacc/runtime/base/failure.h"

namespace pwx {

bool is_plan(const Recorded& launch) { return launch.kernel.function == nullptr; }

namespace {

using namespace pw::cuda;

size_t padded_size(unsigned size) {
  constexpr size_t kAlignedArgument = 16;
  return (size + kAlignedArgument - 1) / kAlignedArgument * kAlignedArgument;
}

static_assert(PWX_LOOP_AGAIN == 1, "as pwx_goes_on has it in kernels/types.cuh");

void issue(CUstream stream, Recorded& launch, CUdeviceptr state) {
  if (is_plan(launch)) {
    peerway::Plan& plan = *launch.kernel.plan;
    const pw_stream on = the_gpu().stream(stream);
    const auto* const word = reinterpret_cast<const int*>(state);
    plan.leave_room(launch.leaves_room);
    peerway::check(word == nullptr ? plan.run(on) : plan.run_if(on, word, PWX_LOOP_AGAIN));
    return;
  }
  std::vector<void*> arguments;
  std::byte* at = launch.arguments.data();
  for (const unsigned size : launch.sizes) {
    arguments.push_back(at);
    at += padded_size(size);
  }
  launch_on(stream, launch.kernel, arguments, state);
}

}  // namespace

void record(Recording& recording, const KernelLaunch& launch, void** arguments, const unsigned* sizes,
            size_t count) {
  Recorded& entry = recording.emplace_back();
  entry.kernel = launch;
  entry.sizes.assign(sizes, sizes + count);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = entry.arguments.size();
    entry.arguments.resize(at + padded_size(sizes[i]));
    std::memcpy(entry.arguments.data() + at, arguments[i], sizes[i]);
  }
}

void record(Recording& recording, peerway::Plan& plan) { recording.emplace_back().kernel.plan = &plan; }

void launch_on(CUstream stream, const KernelLaunch& launch, std::span<void* const> arguments,
               CUdeviceptr state) {
  const Gpu& gpu = the_gpu();
  CUdeviceptr overlaps = launch.overlaps;
  std::array<void*, kMostArguments + 2> all;
  const auto behind = std::ranges::copy(arguments, all.begin()).out;
  behind[0] = &state;
  behind[1] = &overlaps;
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value[0] = 1;
  const auto& [blocks, threads] = launch.grid;
  const CUlaunchConfig config{blocks[0], blocks[1], blocks[2], threads, 1,
                              1,         0,         stream,    &early,  launch.in_order ? 1U : 0U};
  gpu.check(gpu.driver.cuLaunchKernelEx(&config, launch.function, all.data(), nullptr), "launching the loop");
}

void issue_all(Recording& recording, CUstream stream, CUdeviceptr state) {
  for (Recorded& launch : recording) issue(stream, launch, state);
}

CUgraphExec captured(Recording& recording, CUstream stream, long times) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capturing launches");
  CUgraph graph = nullptr;
  try {
    for (long i = 0; i < times; ++i) issue_all(recording, stream);
  } catch (...) {
    gpu.driver.cuStreamEndCapture(stream, &graph);
    if (graph != nullptr) gpu.driver.cuGraphDestroy(graph);
    throw;
  }
  gpu.check(gpu.driver.cuStreamEndCapture(stream, &graph), "capturing launches");
  CUgraphExec graph_exec = nullptr;
  const CUresult status = gpu.driver.cuGraphInstantiate(&graph_exec, graph, 0);
  gpu.driver.cuGraphDestroy(graph);
  gpu.check(status, "making a graph of launches");
  return graph_exec;
}

bool is_conditional(const Recording& recording) {
  return std::ranges::all_of(
      recording, [](const Recorded& launch) { return is_plan(launch) || launch.kernel.conditional; });
}

void check_plans(const Recording& recording) {
  for (const Recorded& launch : recording)
    if (launch.kernel.plan != nullptr) peerway::check(launch.kernel.plan->status());
}

}  // namespace pwx
