#include "xacc/runtime/gpu/sequences.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/device_loops.h"

namespace pwx {

/// A recording of one place of the program. It has a graph once it was made twice.
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

std::vector<std::unique_ptr<pwx_sequence_state>>& sequences() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_sequence_state>>;  // outlives atexit
  return all;
}

int depth = 0;  ///< of nested sequences; only the outermost counts
/// Whether the first part of the sequence has come. It is launched at once: an idle GPU need not wait until
/// the host reaches the end of the sequence and launches a graph.
bool first_came = false;
Recording recorded;

Recording* diverted = nullptr;
uint64_t other_use_count = 0;
std::span<const MemoryOnGpu> refreshed_by_last_launch;
bool* last_is_overlapped = nullptr;  ///< of the reflect that refreshed it

/// While it exists, uses of the GPU are launches in order.
class InOrder {
 public:
  InOrder() { ++depth_; }
  ~InOrder() { --depth_; }
  InOrder(const InOrder&) = delete;
  static bool is_now() { return depth_ > 0; }

 private:
  static inline int depth_ = 0;
};

/// Where the next part is recorded, or null: it is launched at once. The first part of a sequence is.
Recording* recording_of_next_part() {
  if (diverted != nullptr) return diverted;
  return depth > 0 && std::exchange(first_came, true) ? &recorded : nullptr;
}

/// Launches a recording, as a graph if the same one was recorded here before.
void launch_recording(pwx_sequence_state& state, Recording recording) {
  const Gpu& gpu = the_gpu();
  const InOrder in_order;
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
  if (known->graph == nullptr) known->graph = captured(known->recording, stream, 1);
  gpu.check(gpu.driver.cuGraphLaunch(known->graph, stream), "launching a sequence");
}

void end(pwx_sequence& sequence) {
  if (--depth > 0 || diverted != nullptr || recorded.empty()) return;
  Recording whole = std::exchange(recorded, {});
  if (whole.size() == 1) {
    const InOrder in_order;
    issue_all(whole, stream_of(PWX_QUEUE_SYNC));
    return;
  }
  if (sequence.state == nullptr)
    sequence.state = sequences().emplace_back(std::make_unique<pwx_sequence_state>()).get();
  launch_recording(*sequence.state, std::move(whole));
}

}  // namespace

void launch_in_order(const KernelLaunch& launch, void** arguments, const unsigned* sizes, size_t count) {
  refreshed_by_last_launch = {};
  if (sizes == nullptr) return launch_on(stream_of(PWX_QUEUE_SYNC), launch, {arguments, count});
  if (Recording* const recording = recording_of_next_part())
    return record(*recording, launch, arguments, sizes, count);
  const InOrder in_order;
  launch_on(stream_of(PWX_QUEUE_SYNC), launch, {arguments, count});
}

void skip_in_order() {
  if (depth > 0) first_came = true;
}

void run_in_order(peerway::Plan& plan) {
  refreshed_by_last_launch = {};
  if (Recording* const recording = recording_of_next_part()) return record(*recording, plan);
  const InOrder in_order;
  peerway::check(plan.run(peerway_stream(PWX_QUEUE_SYNC)));
}

void reflect_in_order(peerway::Plan& plan, std::span<const MemoryOnGpu> refreshed, bool& overlapped) {
  plan.leave_room(std::exchange(overlapped, false));
  run_in_order(plan);
  refreshed_by_last_launch = refreshed;
  last_is_overlapped = &overlapped;
}

std::span<const MemoryOnGpu> refreshed_last() { return refreshed_by_last_launch; }

void overlap_last_reflect() {
  *last_is_overlapped = true;
  Recording& recording = diverted != nullptr ? *diverted : recorded;
  if (!recording.empty() && is_plan(recording.back())) recording.back().leaves_room = true;
}

void launch_recorded() {
  if (diverted != nullptr && !stop_recording_loop())
    throw Failure(
        "a loop on the GPU uses it in a way in which its iteration before did not; set acc_loops to "
        "host, and report this");
  if (!InOrder::is_now()) {
    ++other_use_count;
    refreshed_by_last_launch = {};
  }
  if (recorded.empty()) return;
  Recording now = std::exchange(recorded, {});
  const InOrder in_order;
  issue_all(now, stream_of(PWX_QUEUE_SYNC));
}

void divert_launches(Recording* recording) {
  diverted = nullptr;
  launch_recorded();
  diverted = recording;
}

uint64_t other_uses() { return other_use_count; }

void forget_graphs() {
  for (const auto& sequence : sequences()) {
    for (const Known& known : sequence->known)
      if (known.graph != nullptr) the_gpu().driver.cuGraphExecDestroy(known.graph);
    sequence->known.clear();
  }
  forget_loop_graphs();
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
