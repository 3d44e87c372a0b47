#include "xacc/runtime/gpu/sequences.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "xacc/runtime/base/failure.h"

namespace pwx {

/// A recorded kernel launch with its arguments, or a plan.
struct Recorded {
  KernelLaunch kernel{};
  peerway::Plan* plan = nullptr;
  std::vector<unsigned> sizes{};
  std::vector<std::byte> arguments{};  ///< each padded to its padded_size()

  bool operator==(const Recorded&) const = default;
};
using Recording = std::vector<Recorded>;

/// A list of launches recorded at one place of the program. It has a graph once it was recorded twice.
struct Known {
  Recording recording;
  pw::cuda::CUgraphExec graph = nullptr;
};

}  // namespace pwx

struct pwx_sequence_state {
  std::vector<pwx::Known> known;
};

namespace pwx {
namespace {

using namespace pw::cuda;

constexpr size_t kMostGraphs = 8;  // of a sequence; a loop that swaps arrays needs a few

size_t padded_size(unsigned size) {
  constexpr size_t kAlignedArgument = 16;
  return (size + kAlignedArgument - 1) / kAlignedArgument * kAlignedArgument;
}

std::vector<std::unique_ptr<pwx_sequence_state>>& sequences() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_sequence_state>>;  // outlives atexit
  return all;
}

int depth = 0;  ///< of nested sequences; only the outermost counts
/// Whether the first part of the sequence has come. It is launched at once: an idle GPU need not wait until
/// the host reaches the end of the sequence and launches a graph.
bool first_came = false;
Recording recorded;

/// Whether a part must be recorded.
bool must_record() { return depth > 0 && std::exchange(first_came, true); }

void issue(CUstream stream, Recorded& launch) {
  if (launch.plan != nullptr) {
    peerway::check(launch.plan->run(peerway::cuda_stream(stream, the_gpu().ordinal)));
    return;
  }
  std::vector<void*> arguments;
  std::byte* at = launch.arguments.data();
  for (const unsigned size : launch.sizes) {
    arguments.push_back(at);
    at += padded_size(size);
  }
  launch_on(stream, launch.kernel, arguments.data());
}

void issue_all(Recording& recording, CUstream stream) {
  for (Recorded& launch : recording) issue(stream, launch);
}

CUgraphExec captured(Recording& recording, CUstream stream) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capturing a sequence");
  issue_all(recording, stream);
  CUgraph graph = nullptr;
  gpu.check(gpu.driver.cuStreamEndCapture(stream, &graph), "capturing a sequence");
  CUgraphExec graph_exec = nullptr;
  const CUresult status = gpu.driver.cuGraphInstantiate(&graph_exec, graph, 0);
  gpu.driver.cuGraphDestroy(graph);
  gpu.check(status, "making a graph of a sequence");
  return graph_exec;
}

void check_plans(const Recording& recording) {
  for (const Recorded& launch : recording)
    if (launch.plan != nullptr) peerway::check(launch.plan->status());
}

/// Launches a recording, as a graph if the same one was recorded here before.
void launch_recording(pwx_sequence_state& state, Recording recording) {
  const Gpu& gpu = the_gpu();
  CUstream stream = stream_of(PWX_QUEUE_SYNC);
  const auto known = std::ranges::find(state.known, recording, &Known::recording);
  if (known == state.known.end()) {
    issue_all(recording, stream);
    if (state.known.size() == kMostGraphs) {
      const auto once = std::ranges::find(state.known, CUgraphExec{nullptr}, &Known::graph);
      if (once == state.known.end()) return;
      state.known.erase(once);
    }
    state.known.push_back({std::move(recording), nullptr});
    return;
  }
  check_plans(recording);
  if (known->graph == nullptr) known->graph = captured(known->recording, stream);
  gpu.check(gpu.driver.cuGraphLaunch(known->graph, stream), "launching a sequence");
}

void end(pwx_sequence& sequence) {
  if (--depth > 0 || recorded.empty()) return;
  Recording whole = std::exchange(recorded, {});
  if (whole.size() == 1) {
    issue_all(whole, stream_of(PWX_QUEUE_SYNC));
    return;
  }
  if (sequence.state == nullptr)
    sequence.state = sequences().emplace_back(std::make_unique<pwx_sequence_state>()).get();
  launch_recording(*sequence.state, std::move(whole));
}

}  // namespace

void launch_on(CUstream stream, const KernelLaunch& launch, void** arguments) {
  const Gpu& gpu = the_gpu();
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value[0] = 1;
  const auto& [blocks, threads] = launch.grid;
  const CUlaunchConfig config{blocks[0], blocks[1], blocks[2], threads, 1,
                              1,         0,         stream,    &early,  launch.in_order ? 1U : 0U};
  gpu.check(gpu.driver.cuLaunchKernelEx(&config, launch.function, arguments, nullptr), "launching the loop");
}

void launch_in_order(const KernelLaunch& launch, void** arguments, const unsigned* sizes, size_t count) {
  if (sizes == nullptr || !must_record()) return launch_on(stream_of(PWX_QUEUE_SYNC), launch, arguments);
  Recorded& entry = recorded.emplace_back();
  entry.kernel = launch;
  entry.sizes.assign(sizes, sizes + count);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = entry.arguments.size();
    entry.arguments.resize(at + padded_size(sizes[i]));
    std::memcpy(entry.arguments.data() + at, arguments[i], sizes[i]);
  }
}

void run_in_order(peerway::Plan& plan) {
  if (must_record())
    recorded.emplace_back().plan = &plan;
  else
    peerway::check(plan.run(peerway_stream(PWX_QUEUE_SYNC)));
}

void launch_recorded() {
  if (recorded.empty()) return;
  Recording now = std::exchange(recorded, {});
  issue_all(now, stream_of(PWX_QUEUE_SYNC));
}

void forget_graphs() {
  for (const auto& sequence : sequences()) {
    for (const Known& known : sequence->known)
      if (known.graph != nullptr) the_gpu().driver.cuGraphExecDestroy(known.graph);
    sequence->known.clear();
  }
}

}  // namespace pwx

extern "C" {

void pwx_sequence_begin(void) {
  if (pwx::depth++ == 0) pwx::first_came = false;
}

void pwx_sequence_end(pwx_sequence* sequence, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::end(*sequence); });
}

}  // extern "C"
