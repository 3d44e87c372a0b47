#include "xacc/runtime/gpu/loop_graph.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "peerway/xacc/acc.h"
#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

using namespace pw::cuda;

/// The driver compiles this itself, because only it knows the function that sets a condition. A condition is
/// met if the loop's state has the wanted value, and the host has not stopped loops.
constexpr const char* kSetCondition = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry set_condition(
  .param .u64 handle, .param .u64 state, .param .u64 stop, .param .u32 wanted)
{
  .reg .b64 %rd<6>;
  .reg .b32 %r<6>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [state];
  ld.param.u64 %rd3, [stop];
  ld.param.u32 %r1, [wanted];
  cvta.to.global.u64 %rd4, %rd2;
  cvta.to.global.u64 %rd5, %rd3;
  ld.global.u32 %r2, [%rd4];
  ld.volatile.global.u32 %r3, [%rd5];
  setp.eq.u32 %p1, %r2, %r1;
  setp.eq.and.u32 %p2, %r3, 0, %p1;
  selp.u32 %r4, 1, 0, %p2;
  {
    .param .b64 first;
    .param .b32 second;
    st.param.b64 [first], %rd1;
    st.param.b32 [second], %r4;
    call.uni cudaGraphSetConditional, (first, second);
  }
  ret;
}
)";

/// Iterations between two tests of the WHILE node, each of which takes as long as several small kernels. The
/// kernels of those after the loop's last one do nothing. With many blocks, reading the state takes longer
/// than a test.
constexpr int kIterationsOfBody = 4;
constexpr unsigned long kFewBlocks = 1 << 14;
/// Iterations that are issued one by one before the host makes a graph, so that the GPU is busy meanwhile.
constexpr int kIterationsMeanwhile = 16;
/// Launches in a graph without conditions: enough that the few microseconds between two graphs matter little.
/// The host takes 3 to 8 µs to make one of them.
constexpr long kMostLaunches = 128;

/// The kernel, and the word on the GPU by which the host stops loops.
struct ConditionSetter {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr stop = 0;
  CUstream stopping = nullptr;  ///< the host writes `stop` here while a loop runs
};
ConditionSetter condition_setter;

void clear_stop() {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemsetD8Async(condition_setter.stop, 0, sizeof(uint32_t), condition_setter.stopping),
            "preparing loops");
  gpu.check(gpu.driver.cuStreamSynchronize(condition_setter.stopping), "preparing loops");
}

void set_condition(CUstream stream, CUgraphConditionalHandle handle, CUdeviceptr state, uint32_t wanted) {
  void* arguments[] = {&handle, &state, &condition_setter.stop, &wanted};
  launch_on(stream, {condition_setter.kernel, false, false, {{1, 1, 1}, 1}}, arguments);
}

/// A condition that is false until a kernel sets it.
CUgraphConditionalHandle handle_in(CUgraph graph, CUcontext context) {
  const Gpu& gpu = the_gpu();
  CUgraphConditionalHandle handle = 0;
  gpu.check(gpu.driver.cuGraphConditionalHandleCreate(&handle, graph, context, 0, kConditionAssignDefault),
            "making the condition of a loop");
  return handle;
}

struct Conditional {
  CUgraphNode node;
  CUgraph body;
};

Conditional add_conditional(CUgraph graph, CUcontext context, int type, CUgraphConditionalHandle handle,
                            const std::vector<CUgraphNode>& after) {
  const Gpu& gpu = the_gpu();
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional = {handle, type, 1, nullptr, context};
  Conditional added{};
  gpu.check(gpu.driver.cuGraphAddNode(&added.node, graph, after.data(), after.size(), &params),
            "adding a loop to a graph");
  added.body = params.conditional.phGraph_out[0];
  return added;
}

/// Captures what `issue` issues on the stream into a graph, behind a node of it.
template <typename Issue>
void capture(CUstream stream, CUgraph graph, const std::vector<CUgraphNode>& after, const Issue& issue) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuStreamBeginCaptureToGraph(stream, graph, after.data(), nullptr, after.size(),
                                                   CU_STREAM_CAPTURE_MODE_RELAXED),
            "capturing a loop");
  CUgraph whole = nullptr;
  try {
    issue();
  } catch (...) {
    gpu.driver.cuStreamEndCapture(stream, &whole);
    throw;
  }
  gpu.check(gpu.driver.cuStreamEndCapture(stream, &whole), "capturing a loop");
}

/// The node that was added to a graph besides those known.
CUgraphNode other_node(CUgraph graph, const std::vector<CUgraphNode>& known) {
  const Gpu& gpu = the_gpu();
  std::vector<CUgraphNode> nodes(known.size() + 1);
  size_t count = nodes.size();
  gpu.check(gpu.driver.cuGraphGetNodes(graph, nodes.data(), &count), "reading the graph of a loop");
  return *std::ranges::find_if(
      nodes, [&](CUgraphNode node) { return std::ranges::find(known, node) == known.end(); });
}

unsigned long blocks_of(const Recording& recording) {
  unsigned long blocks = 0;
  for (const Recorded& launch : recording) {
    const auto& [x, y, z] = launch.kernel.grid.blocks;
    blocks += static_cast<unsigned long>(x) * y * z;
  }
  return blocks;
}

/// Issues iterations that do nothing if the loop has ended by then.
void issue_if_again(LoopParts& parts, int count, CUstream stream) {
  for (int i = 0; i < count; ++i) issue_all(parts.again, stream, parts.state);
}

}  // namespace

LoopGraph::~LoopGraph() { destroy(); }

void LoopGraph::destroy() {
  if (graph_ != nullptr) the_gpu().driver.cuGraphExecDestroy(std::exchange(graph_, nullptr));
}

LoopGraph::LoopGraph(LoopGraph&& other) noexcept
    : parts(std::move(other.parts)),
      graph_(std::exchange(other.graph_, nullptr)),
      iterations_(other.iterations_) {}

LoopGraph& LoopGraph::operator=(LoopGraph&& other) noexcept {
  std::swap(parts, other.parts);
  std::swap(graph_, other.graph_);
  std::swap(iterations_, other.iterations_);
  return *this;
}

void LoopGraph::make_conditional(CUstream stream) {
  const Gpu& gpu = the_gpu();
  CUcontext context = nullptr;
  gpu.check(gpu.driver.cuCtxGetCurrent(&context), "making the graph of a loop");
  CUgraph graph = nullptr;
  gpu.check(gpu.driver.cuGraphCreate(&graph, 0), "making the graph of a loop");
  const std::unique_ptr<CUgraph_st, CUresult (*)(CUgraph)> owned(graph, gpu.driver.cuGraphDestroy);
  const CUgraphConditionalHandle goes_on = handle_in(graph, context);
  capture(stream, graph, {}, [&] { set_condition(stream, goes_on, parts.state, PWX_LOOP_AGAIN); });
  const CUgraphNode test = other_node(graph, {});
  const Conditional loop = add_conditional(graph, context, CU_GRAPH_COND_TYPE_WHILE, goes_on, {test});
  capture(stream, loop.body, {}, [&] {
    issue_all(parts.again, stream);
    if (is_conditional(parts.again) && blocks_of(parts.again) <= kFewBlocks)
      issue_if_again(parts, kIterationsOfBody - 1, stream);
    set_condition(stream, goes_on, parts.state, PWX_LOOP_AGAIN);
  });
  if (!parts.last.empty()) {
    const CUgraphConditionalHandle rest = handle_in(graph, context);
    capture(stream, graph, {loop.node}, [&] { set_condition(stream, rest, parts.state, PWX_LOOP_LAST); });
    const CUgraphNode behind = other_node(graph, {test, loop.node});
    const Conditional last = add_conditional(graph, context, CU_GRAPH_COND_TYPE_IF, rest, {behind});
    capture(stream, last.body, {}, [&] { issue_all(parts.last, stream); });
  }
  gpu.check(gpu.driver.cuGraphInstantiate(&graph_, graph, 0), "making the graph of a loop");
}

void LoopGraph::repeat(CUstream stream, long iterations) {
  if (parts.again.empty()) return;  // a rank without elements
  const Gpu& gpu = the_gpu();
  const long fit = std::max(kMostLaunches / static_cast<long>(parts.again.size()), 1L);
  const long unrolled = std::min(iterations, fit);
  long remaining = iterations;
  const auto issue_up_to = [&](long most) {
    for (long i = 0; i < most && remaining > 0; ++i, --remaining) issue_all(parts.again, stream);
  };
  if (graph_ == nullptr) issue_up_to(unrolled == iterations ? iterations : kIterationsMeanwhile);
  if (2 * iterations_ < unrolled) {
    destroy();
    graph_ = captured(parts.again, stream, unrolled);
    iterations_ = unrolled;
  }
  for (; remaining >= iterations_; remaining -= iterations_) {
    check_plans(parts.again);
    gpu.check(gpu.driver.cuGraphLaunch(graph_, stream), "launching a loop");
  }
  issue_up_to(remaining);
}

void LoopGraph::launch(CUstream stream) {
  const Gpu& gpu = the_gpu();
  prepare_loop_graphs();
  if (graph_ == nullptr) {
    if (is_conditional(parts.again)) issue_if_again(parts, kIterationsMeanwhile, stream);
    make_conditional(stream);
  }
  gpu.check(gpu.driver.cuGraphLaunch(graph_, stream), "launching a loop");
}

bool LoopGraph::has_failed() const {
  const auto failed = [](const Recorded& launch) {
    const peerway::Plan* const plan = launch.kernel.plan;
    return plan != nullptr && plan->status() != peerway::Status::ok;
  };
  return std::ranges::any_of(parts.again, failed) || std::ranges::any_of(parts.last, failed);
}

bool LoopGraph::has_plans() const {
  return std::ranges::any_of(parts.again,
                             [](const Recorded& launch) { return launch.kernel.plan != nullptr; });
}

void LoopGraph::stop() const {
  if (iterations_ > 0) return;
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemsetD8Async(condition_setter.stop, 1, sizeof(uint32_t), condition_setter.stopping),
            "stopping a loop");
  gpu.check(gpu.driver.cuStreamSynchronize(condition_setter.stopping), "stopping a loop");
}

void prepare_loop_graphs() {
  if (condition_setter.kernel != nullptr) return;
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuModuleLoadData(&condition_setter.module, kSetCondition), "preparing loops");
  gpu.check(gpu.driver.cuMemAlloc(&condition_setter.stop, sizeof(uint32_t)), "preparing loops");
  gpu.check(gpu.driver.cuStreamCreateWithPriority(&condition_setter.stopping, CU_STREAM_NON_BLOCKING, 0),
            "preparing loops");
  clear_stop();
  gpu.check(
      gpu.driver.cuModuleGetFunction(&condition_setter.kernel, condition_setter.module, "set_condition"),
      "preparing loops");
}

void free_loop_graphs() {
  if (condition_setter.kernel == nullptr) return;
  const Gpu& gpu = the_gpu();
  gpu.driver.cuMemFree(condition_setter.stop);
  gpu.driver.cuStreamDestroy(condition_setter.stopping);
  gpu.driver.cuModuleUnload(condition_setter.module);
  condition_setter = {};
}

}  // namespace pwx
