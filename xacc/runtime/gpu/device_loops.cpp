#include "xacc/runtime/gpu/device_loops.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/relax.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/loop_graph.h"
#include "xacc/runtime/gpu/recording.h"
#include "xacc/runtime/gpu/sequences.h"
#include "xacc/runtime/gpu/small_copies.h"

/// The graphs of one loop in the text: a program may run it with different arrays.
struct pwx_loop_state {
  std::vector<pwx::LoopGraph> graphs;
};

namespace pwx {

namespace settings {

const pw::ChoiceSetting<Loops> acc_loops{
    "acc_loops", "graph|steps|host", "graph",
    "How loops of `peerway cc` run whose scalars can live on the GPU. graph: as one CUDA graph; steps: the "
    "host reads once an iteration whether it goes on; host: as the program has them."};

}  // namespace settings

namespace {

using namespace pw::cuda;

/// A program that swaps arrays between its solves needs a few.
constexpr size_t kMostGraphsOfLoop = 8;
/// Parts that run one by one before a loop is recorded for the first time: by then plans exist, and the
/// reflects that are free in one iteration are free in all later ones.
constexpr int kPartsBeforeRecording = 2;

std::vector<std::unique_ptr<pwx_loop_state>>& loops() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_loop_state>>;  // outlives atexit
  return all;
}

/// The loop that runs now.
struct Running {
  pwx_loop* loop = nullptr;
  std::optional<long> remaining{};   ///< iterations that have not been executed, if the host counts them
  int parts = 0;                     ///< so far, after which the loop went on
  uint64_t other_uses = 0;           ///< of the GPU, when the last part began
  std::vector<Reflect*> reflects{};  ///< in it
  bool recording = false;
  LoopParts recorded{};
};
Running running;

void (*make_halos_old)(Reflect& reflect) = nullptr;

bool program_has_loops = false;

bool may_record() {
  return settings::acc_loops.value() == settings::Loops::graph && the_gpu().driver.has_conditional_nodes();
}

CUdeviceptr address_of(const int* on_gpu) { return reinterpret_cast<CUdeviceptr>(on_gpu); }

/// Waits for the work so far, and returns the state that it left.
int read_state(const int* state) {
  int value = PWX_LOOP_DONE;
  SmallCopies copies;
  copies.to_host(&value, address_of(state), sizeof value);
  copies.finish();
  return value;
}

int part_of(int state) { return state == PWX_LOOP_AGAIN || state == PWX_LOOP_LAST ? state : 0; }

/// Begins to record the part behind the test and the part before it: an iteration.
void begin_recording(const int* state) {
  running.recording = true;
  running.recorded = {};
  running.recorded.state = address_of(state);  // 0 if the host counts
  divert_launches(&running.recorded.again);
}

bool has_graphs(const pwx_loop& loop) { return loop.state != nullptr && !loop.state->graphs.empty(); }

bool is_known(const pwx_loop& loop, const Recording& again) {
  return std::ranges::any_of(loop.state->graphs,
                             [&](const LoopGraph& graph) { return graph.parts.again == again; });
}

/// Whether the iteration that was recorded is as all later ones will be: enough others came before it, or the
/// loop has a graph of it.
bool is_steady() {
  return running.parts >= kPartsBeforeRecording || is_known(*running.loop, running.recorded.again);
}

/// Executes what was recorded of an iteration, and ends the recording.
void execute_recorded() {
  running.recording = false;
  divert_launches(nullptr);
  running.other_uses = other_uses();
  check_plans(running.recorded.again);
  issue_all(running.recorded.again, stream_of(PWX_QUEUE_SYNC));
}

/// Ends the recording of a part. Returns the part to record next.
int record_next(bool has_rest) {
  if (!has_rest || running.recorded.has_rest) return 0;
  running.recorded.has_rest = true;
  divert_launches(&running.recorded.last);
  return PWX_LOOP_LAST;
}

/// Ends an iteration that was executed, of a loop that the host counts.
int count_down() { return --*running.remaining > 0 ? PWX_LOOP_AGAIN : 0; }

/// A loop that has run before is recorded as soon as it is known to go on. If its iteration is not one of
/// those before, that is executed like the first ones.
int next(const int* state, bool has_rest) {
  if (gpu() == nullptr) return running.remaining ? count_down() : part_of(*state);
  if (running.recording) {
    if (running.recorded.has_rest || is_steady()) return record_next(has_rest);
    execute_recorded();
  }
  const bool launches_only = running.other_uses == other_uses();
  const int part = running.remaining ? count_down() : part_of(read_state(state));
  const int parts_before = has_graphs(*running.loop) ? 1 : kPartsBeforeRecording;
  if (part == PWX_LOOP_AGAIN && ++running.parts >= parts_before && launches_only && may_record())
    begin_recording(state);
  running.other_uses = other_uses();
  return part;
}

/// A loop that the host counts, and that has run before, is recorded from its first iteration on: the host
/// knows that it is executed.
void begin(pwx_loop& loop, long count) {
  running = {&loop, {}, 0, other_uses()};
  if (count == PWX_COUNT_UNKNOWN) return;
  running.remaining = count;
  if (gpu() != nullptr && has_graphs(loop) && may_record()) begin_recording(nullptr);
}

LoopGraph& graph_of(pwx_loop& loop, LoopParts parts) {
  if (loop.state == nullptr) loop.state = loops().emplace_back(std::make_unique<pwx_loop_state>()).get();
  auto& graphs = loop.state->graphs;
  const auto known = std::ranges::find(graphs, parts, &LoopGraph::parts);
  if (known != graphs.end()) return *known;
  if (graphs.size() == kMostGraphsOfLoop) graphs.erase(graphs.begin());
  return graphs.emplace_back(std::move(parts));
}

/// Waits for the graph. A plan in it that fails, because a rank is lost, ends the loop.
void wait_for_loop(LoopGraph& graph) {
  using namespace std::chrono_literals;
  constexpr int kTurns = 4096;  // before it sleeps
  for (int turn = 0; !idle(PWX_QUEUE_SYNC); ++turn) {
    if (turn < kTurns) {
      pw::relax();
      continue;
    }
    if (graph.has_failed()) {
      graph.stop();
      wait_for_unqueued();
      break;
    }
    std::this_thread::sleep_for(20us);
  }
  check_plans(graph.parts.again);
  check_plans(graph.parts.last);
}

/// The host does not know how often the parts with these reflects were executed: as often as the program
/// says, or not at all. So their halos count as old, on all ranks alike.
void forget_halos_of_loop() {
  for (Reflect* const reflect : running.reflects) make_halos_old(*reflect);
}

void end(pwx_loop& loop) {
  const bool was_recording = std::exchange(running.recording, false);
  running.loop = nullptr;
  forget_halos_of_loop();
  if (!was_recording) return;
  divert_launches(nullptr);
  LoopGraph& graph = graph_of(loop, std::move(running.recorded));
  check_plans(graph.parts.again);
  CUstream stream = stream_of(PWX_QUEUE_SYNC);
  if (running.remaining)
    graph.repeat(stream, *running.remaining);
  else
    graph.launch(stream);
  if (!running.remaining || graph.has_plans()) wait_for_loop(graph);
}

}  // namespace

void note_reflect_of_loop(Reflect& reflect) {
  if (running.loop != nullptr && std::ranges::find(running.reflects, &reflect) == running.reflects.end())
    running.reflects.push_back(&reflect);
}

void notify_halos(void (*halos_are_old)(Reflect& reflect)) { make_halos_old = halos_are_old; }

bool stop_recording_loop() {
  if (!running.recording || running.recorded.has_rest || running.parts >= kPartsBeforeRecording) return false;
  execute_recorded();
  return true;
}

void prepare_loops() {
  if (program_has_loops && may_record()) prepare_loop_graphs();
}

void forget_loop_graphs() {
  for (const auto& loop : loops()) loop->graphs.clear();
}

void free_loops() {
  forget_loop_graphs();
  free_loop_graphs();
}

}  // namespace pwx

extern "C" {

void pwx_has_loops(void) { pwx::program_has_loops = true; }

int pwx_loops_on_gpu(void) {
  using Loops = pwx::settings::Loops;
  const Loops loops = pwx::settings::acc_loops.value();
  return loops == Loops::steps || (loops == Loops::graph && pwx::gpu() != nullptr) ? 1 : 0;
}

void pwx_loop_begin(pwx_loop* loop, long count, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::running.loop != nullptr) throw pwx::Failure("a loop on the GPU is within another one");
    pwx::begin(*loop, count);
  });
}

int pwx_loop_next(pwx_loop*, const int* state, int has_rest, const pwx_where* where) {
  return pwx::guarded(where, [&] { return pwx::next(state, has_rest != 0); });
}

void pwx_loop_end(pwx_loop* loop, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::end(*loop); });
}

}  // extern "C"
