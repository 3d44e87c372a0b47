// Launching the persistent stencil: who keeps which rows, where the neighbours' slots are, and how it ends
// early.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "cuda_check.h"
#include "in_kernel.h"
#include "persistent.cuh"

namespace stencil {

namespace {

constexpr unsigned kMostThreads = 1024;

struct CudaThreads {
  static constexpr unsigned kWarp = 32;
  __device__ unsigned block() const { return blockIdx.x; }
  __device__ unsigned index() const { return threadIdx.x; }
  __device__ unsigned count() const { return blockDim.x; }
  __device__ bool any(bool yes) const { return __syncthreads_or(yes) != 0; }
  __device__ void sync_warp() const { __syncwarp(); }
  __device__ void pause() const {}
};

__global__ void __launch_bounds__(kMostThreads, 1) persistent(const __grid_constant__ Persistent work) {
  extern __shared__ double shared[];
  const CudaThreads threads;
  Worker<CudaThreads>(work, threads, shared).run();
}

/// How a lattice is laid over the blocks of a GPU.
struct Layout {
  unsigned rows, blocks, threads;
  size_t shared_bytes;
};

Layout layout_of(uint64_t ny, uint64_t nx, const cudaDeviceProp& gpu) {
  const uint64_t most = static_cast<uint64_t>(gpu.multiProcessorCount);
  const auto rows = static_cast<unsigned>((ny + most - 1) / most);
  const auto threads = static_cast<unsigned>(std::min<uint64_t>(kMostThreads, (nx + 31) / 32 * 32));
  return {rows, static_cast<unsigned>((ny + rows - 1) / rows), threads,
          sizeof(double) * shared_doubles(rows, static_cast<unsigned>(nx))};
}

/// That of this rank. Whether it fits is asked of the largest part, so that all ranks come to the same
/// answer.
Layout fitting_layout(const Lattice& lattice) {
  int index = 0;
  must(cudaGetDevice(&index), "cudaGetDevice");
  cudaDeviceProp gpu{};
  must(cudaGetDeviceProperties(&gpu, index), "cudaGetDeviceProperties");
  const Lattice first = make_lattice(lattice.global, lattice.grid, lattice.periodic, 0);
  const Layout needed = layout_of(first.count[Y], first.count[X], gpu);
  if (needed.shared_bytes <= gpu.sharedMemPerBlockOptin)
    return layout_of(lattice.count[Y], lattice.count[X], gpu);
  uint64_t edge = 32;
  while (layout_of(edge + 32, edge + 32, gpu).shared_bytes <= gpu.sharedMemPerBlockOptin) edge += 32;
  throw Refused("stencil2d: in-kernel keeps the lattice in shared memory: " + std::to_string(first.count[Y]) +
                "x" + std::to_string(first.count[X]) + " cells on a rank need " +
                std::to_string(needed.shared_bytes) + " bytes in each of " + std::to_string(needed.blocks) +
                " blocks, and " + gpu.name + " has " + std::to_string(gpu.sharedMemPerBlockOptin) +
                ". A square of up to " + std::to_string(edge) + " fits; for more take --variant graph.");
}

/// Memory of the GPU, freed with it.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) {
    const size_t bytes = std::max<size_t>(count, 1) * sizeof(T);
    must(cudaMalloc(reinterpret_cast<void**>(&memory_), bytes), "cudaMalloc");
    must(cudaMemset(memory_, 0, bytes), "cudaMemset");
  }
  ~Buffer() { cudaFree(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return memory_; }

 private:
  T* memory_ = nullptr;
};

/// Peerway's part: a plan whose lanes to and from the neighbours the kernel uses itself.
class Lanes {
 public:
  Lanes(const Problem& problem, pw_stream queue, peerway::Context& context)
      : lattice_(problem.lattice),
        rank_(problem.group.rank()),
        region_(context.register_memory(problem.field[0], problem.lattice.bytes())),
        to_itself_(4 * (lattice_.count[Y] + lattice_.count[X])) {
    auto builder = context.plan(queue.device);
    for (const Dim dim : {Y, X})
      for (const Side side : {Before, After}) add(builder, dim, side);
    plan_.emplace(builder.prepare());
    plan_->set_timeout(std::chrono::nanoseconds(static_cast<int64_t>(1e9 * problem.options.timeout_s)));
  }

  pw_guard guard() const { return plan_->handle().guard; }

  /// Throws when the plan was cancelled: a rank was lost, a packet did not come in time.
  void check() const { peerway::check(plan_->status()); }

  Lane lane(Dim dim, Side side) const {
    const int there = lattice_.neighbour(dim, side);
    if (there < 0) return {nullptr, nullptr, 0, -1};
    if (there == rank_) return lane_to_itself(dim, side);
    const pw_lane_handle out = plan_->send_lane(there, tag(dim, side));
    const pw_lane_handle in = plan_->receive_lane(there, tag(dim, opposite(side)));
    return {reinterpret_cast<Packet*>(out.slots), reinterpret_cast<Packet*>(in.slots),
            static_cast<unsigned>(out.slot_bytes / sizeof(Packet)), there};
  }

 private:
  static Side opposite(Side side) { return side == Before ? After : Before; }
  /// The direction in which it travels: two ranks may be neighbours on both sides.
  static int tag(Dim dim, Side side) { return 2 * dim + side; }

  /// The outermost own row or column. It tells the plan how much is sent: the kernel has it in shared memory.
  pw_block edge(Dim dim, Side side) const {
    const uint64_t pitch = lattice_.pitch() * sizeof(double);
    const uint64_t first = pitch + sizeof(double);
    const uint64_t last = side == After ? lattice_.count[dim] - 1 : 0;
    if (dim == Y)
      return peerway::make_block({}, {}, lattice_.count[X] * sizeof(double), first + last * pitch);
    const std::array counts{static_cast<uint64_t>(lattice_.count[Y])};
    const std::array strides{static_cast<int64_t>(pitch)};
    return peerway::make_block(counts, strides, sizeof(double), first + last * sizeof(double));
  }

  void add(peerway::PlanBuilder& builder, Dim dim, Side side) {
    const int there = lattice_.neighbour(dim, side);
    if (there < 0 || there == rank_) return;
    const auto block = region_.block(edge(dim, side));
    builder.send(there, tag(dim, side), block).receive(there, tag(dim, opposite(side)), block);
  }

  /// In a periodic dimension of one rank.
  Lane lane_to_itself(Dim dim, Side side) const {
    const auto length = static_cast<unsigned>(lattice_.count[dim == Y ? X : Y]);
    Packet* of_dim = to_itself_.get() + (dim == X ? 4 * lattice_.count[X] : 0);
    Packet* slots[2] = {of_dim, of_dim + 2 * length};  // for what comes from before, from after
    return {slots[opposite(side)], slots[side], length, rank_};
  }

  const Lattice& lattice_;
  int rank_;
  peerway::Region region_;
  Buffer<Packet> to_itself_;
  std::optional<peerway::Plan> plan_;
};

class InKernel : public Variant {
 public:
  InKernel(const Problem& problem, peerway::Context& context)
      : problem_(problem),
        context_(context),
        layout_(fitting_layout(problem.lattice)),
        queue_(problem.device.queue(false)),
        inner_(layout_.blocks * 4 * problem.lattice.count[X]),
        lanes_(problem, queue_, context) {
    must(cudaFuncSetAttribute(persistent, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(layout_.shared_bytes)),
         "cudaFuncSetAttribute");
    work_.pitch = problem.lattice.pitch();
    work_.ny = static_cast<unsigned>(problem.lattice.count[Y]);
    work_.nx = static_cast<unsigned>(problem.lattice.count[X]);
    work_.rows = layout_.rows;
    work_.rank = problem.group.rank();
    work_.north = lanes_.lane(Y, Before);
    work_.south = lanes_.lane(Y, After);
    work_.west = lanes_.lane(X, Before);
    work_.east = lanes_.lane(X, After);
    work_.inner = inner_.get();
    work_.flag = 1;
    work_.guard = lanes_.guard();
  }

  std::vector<double> run(uint64_t steps, uint64_t batch) override {
    const Buffer<Word> marks(steps / batch + 1);
    work_.from = problem_.field[0];
    work_.to = problem_.field[steps % 2];
    work_.steps = steps;
    work_.batch = batch;
    work_.marks = marks.get();
    must(cudaDeviceSynchronize(), "clearing memory");
    void* arguments[] = {&work_};
    must(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(persistent), dim3(layout_.blocks),
                                     dim3(layout_.threads), arguments, layout_.shared_bytes,
                                     static_cast<cudaStream_t>(queue_.queue)),
         "launching the persistent kernel");
    peerway::check(pw_stream_wait(context_.get(), queue_, PW_FOREVER));  // the plan's guard ends it
    lanes_.check();
    work_.flag += static_cast<unsigned>(steps);
    std::vector<Word> words(steps / batch + 1);
    must(cudaMemcpy(words.data(), marks.get(), words.size() * sizeof(Word), cudaMemcpyDefault), "cudaMemcpy");
    return differences({words.begin(), words.end()});
  }

  /// The exchange is part of the computation.
  std::optional<double> exchange_alone(uint64_t) override { return std::nullopt; }

 private:
  const Problem& problem_;
  peerway::Context& context_;
  Layout layout_;
  pw_stream queue_;
  Buffer<Packet> inner_;
  Lanes lanes_;
  Persistent work_{};
};

}  // namespace

std::unique_ptr<Variant> make_in_kernel(const Problem& problem, peerway::Context& context) {
  if (!problem.options.cuda)
    throw Refused("stencil2d: the variant in-kernel is one of GPUs; it needs --device cuda.");
  return std::make_unique<InKernel>(problem, context);
}

}  // namespace stencil
