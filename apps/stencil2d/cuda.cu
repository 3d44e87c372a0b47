// The device `cuda`: the kernels, streams, events and graphs of one GPU.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "backend.h"
#include "cuda_check.h"
#include "host.h"
#include "point.h"

namespace stencil {

namespace {

struct Block {  // of own cells
  uint64_t y0, y1, x0, x1;
};

/// A thread goes down kRows rows of one column. It loads all of them before it stores the first: the way to
/// the memory is long. Rows past the end are clamped, so that no load waits for a comparison.
template <int kRows>
__global__ void sweep_block(const double* __restrict__ from, double* __restrict__ to, size_t pitch,
                            Block block) {
  const uint64_t x = block.x0 + blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t y = block.y0 + (static_cast<uint64_t>(blockIdx.y) * blockDim.y + threadIdx.y) * kRows;
  if (x >= block.x1 || y >= block.y1) return;
  const double* above = from + y * pitch + x + 1;  // y + 1 is the row in the array with its shadow
  const int rows = static_cast<int>(block.y1 - y < kRows ? block.y1 - y : kRows);
  double column[kRows + 2], west[kRows], east[kRows];
#pragma unroll
  for (int row = 0; row < kRows + 2; ++row) column[row] = above[(row < rows + 1 ? row : rows + 1) * pitch];
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const double* here = above + (row < rows ? row + 1 : rows) * pitch;
    west[row] = here[-1];
    east[row] = here[1];
  }
#pragma unroll
  for (int row = 0; row < kRows; ++row)
    if (row < rows)
      to[(y + row + 1) * pitch + x + 1] =
          step(column[row], column[row + 2], west[row], east[row], column[row + 1]);
}

__global__ void sweep_boundary(const double* __restrict__ from, double* __restrict__ to, size_t pitch,
                               uint64_t ny, uint64_t nx) {
  const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= boundary_cells(ny, nx)) return;
  const Cell cell = boundary_cell(i, ny, nx);
  const size_t at = (cell.y + 1) * pitch + cell.x + 1;
  to[at] = step(from[at - pitch], from[at + pitch], from[at - 1], from[at + 1], from[at]);
}

__global__ void pack(const double* __restrict__ from, double* __restrict__ packed, size_t pitch, uint64_t ny,
                     uint64_t nx) {
  const uint64_t y = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (y >= ny) return;
  packed[y] = from[(y + 1) * pitch + 1];
  packed[ny + y] = from[(y + 1) * pitch + nx];
}

__global__ void unpack(const double* __restrict__ packed, double* __restrict__ to, size_t pitch, uint64_t ny,
                       uint64_t nx, bool west, bool east) {
  const uint64_t y = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (y >= ny) return;
  if (west) to[(y + 1) * pitch] = packed[y];
  if (east) to[(y + 1) * pitch + nx + 1] = packed[ny + y];
}

constexpr unsigned kThreads = 128;

unsigned blocks_for(uint64_t items, uint64_t each) {
  return static_cast<unsigned>((items + each - 1) / each);
}

template <int kRows>
void launch_sweep(const Lattice& lattice, const double* from, double* to, const Block& block,
                  cudaStream_t stream) {
  const dim3 threads(kThreads, 2);
  const dim3 blocks(blocks_for(block.x1 - block.x0, threads.x),
                    blocks_for(block.y1 - block.y0, threads.y * kRows));
  sweep_block<kRows><<<blocks, threads, 0, stream>>>(from, to, lattice.pitch(), block);
}

class CudaGraph : public Graph {
 public:
  explicit CudaGraph(cudaGraph_t graph) {
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    must(status, "cudaGraphInstantiate");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(executable_); }
  void replay(pw_stream queue) override {
    must(cudaGraphLaunch(executable_, static_cast<cudaStream_t>(queue.queue)), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int local_rank) {
    int gpus = 0;
    must(cudaGetDeviceCount(&gpus), "looking for GPUs");
    if (gpus == 0) throw std::runtime_error("stencil2d: --device cuda, but this process sees no GPU.");
    index_ = local_rank % gpus;
    must(cudaSetDevice(index_), "cudaSetDevice");
    must(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming), "cudaEventCreate");
    int least = 0;
    must(cudaDeviceGetStreamPriorityRange(&least, &urgent_), "cudaDeviceGetStreamPriorityRange");
  }
  ~CudaDevice() override {
    for (cudaEvent_t event : marks_) cudaEventDestroy(event);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    for (double* memory : memory_) cudaFree(memory);
    cudaEventDestroy(order_);
  }

  double* allocate(size_t doubles) override {
    double* memory = nullptr;
    must(cudaMalloc(&memory, doubles * sizeof(double)), "cudaMalloc");
    memory_.push_back(memory);
    must(cudaMemset(memory, 0, doubles * sizeof(double)), "cudaMemset");
    return memory;
  }
  void copy(void* to, const void* from, size_t bytes) override {
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  pw_stream queue(bool urgent) override {
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? urgent_ : 0),
         "cudaStreamCreate");
    streams_.push_back(stream);
    return {{PW_CUDA, index_}, stream};
  }
  void wait(pw_stream queue) override {
    must(cudaStreamSynchronize(stream_of(queue)), "cudaStreamSynchronize");
  }
  void follow(pw_stream later, pw_stream earlier) override {
    must(cudaEventRecord(order_, stream_of(earlier)), "cudaEventRecord");
    must(cudaStreamWaitEvent(stream_of(later), order_, 0), "cudaStreamWaitEvent");
  }

  void sweep(Part part, const Lattice& lattice, const double* from, double* to, pw_stream queue) override {
    const uint64_t ny = lattice.count[Y], nx = lattice.count[X];
    const cudaStream_t stream = stream_of(queue);
    if (part == Part::boundary) {
      const unsigned blocks = blocks_for(boundary_cells(ny, nx), kThreads);
      sweep_boundary<<<blocks, kThreads, 0, stream>>>(from, to, lattice.pitch(), ny, nx);
    } else if (part == Part::all || (ny > 2 && nx > 2)) {
      const uint64_t edge = part == Part::interior ? 1 : 0;
      const Block block{edge, ny - edge, edge, nx - edge};
      if (ny * nx < (uint64_t{1} << 20))  // rather many threads than long ones
        launch_sweep<1>(lattice, from, to, block, stream);
      else
        launch_sweep<8>(lattice, from, to, block, stream);
    }
    must(cudaGetLastError(), "launching the sweep");
  }
  void pack_columns(const Lattice& lattice, const double* from, double* packed, pw_stream queue) override {
    const uint64_t ny = lattice.count[Y];
    pack<<<blocks_for(ny, kThreads), kThreads, 0, stream_of(queue)>>>(from, packed, lattice.pitch(), ny,
                                                                      lattice.count[X]);
    must(cudaGetLastError(), "launching the pack kernel");
  }
  void unpack_columns(const Lattice& lattice, const double* packed, double* to, pw_stream queue) override {
    const uint64_t ny = lattice.count[Y];
    unpack<<<blocks_for(ny, kThreads), kThreads, 0, stream_of(queue)>>>(
        packed, to, lattice.pitch(), ny, lattice.count[X], lattice.neighbour(X, Before) >= 0,
        lattice.neighbour(X, After) >= 0);
    must(cudaGetLastError(), "launching the unpack kernel");
  }

  void mark(pw_stream queue) override {
    cudaEvent_t event = nullptr;
    must(cudaEventCreate(&event), "cudaEventCreate");
    marks_.push_back(event);
    must(cudaEventRecord(event, stream_of(queue)), "cudaEventRecord");
  }
  std::vector<double> marks() override {
    std::vector<double> since;
    for (cudaEvent_t event : marks_) {
      float ms = 0;
      must(cudaEventElapsedTime(&ms, marks_.front(), event), "cudaEventElapsedTime");
      since.push_back(1e6 * ms);
    }
    for (cudaEvent_t event : marks_) cudaEventDestroy(event);
    marks_.clear();
    return since;
  }

  std::unique_ptr<Graph> capture(pw_stream queue, const std::function<void()>& body) override {
    const cudaStream_t stream = stream_of(queue);
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      body();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      throw;
    }
    must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaGraph>(graph);
  }

 private:
  static cudaStream_t stream_of(pw_stream queue) { return static_cast<cudaStream_t>(queue.queue); }

  int index_ = 0;
  int urgent_ = 0;
  cudaEvent_t order_ = nullptr;
  std::vector<double*> memory_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> marks_;
};

}  // namespace

std::unique_ptr<Device> make_device(bool cuda, int local_rank) {
  if (cuda) return std::make_unique<CudaDevice>(local_rank);
  return std::make_unique<HostDevice>();
}

}  // namespace stencil
