// A layer of a tensor-parallel transformer ends with an all-reduce and a norm. Here both are one kernel: each
// block combines a row of all ranks and normalises it. Beside it the usual form, an all-reduce on the stream
// and a kernel for the norm. Both must give the same bits. A line of JSON for each number of rows.
//
//   nvcc -O3 -std=c++20 -arch=native fused_norm.cu $(pkg-config --cflags --libs peerway) -o fused_norm
//   PEERWAY_COLLECTIVE_METHOD=one-shot peerway run -n 4 -- ./fused_norm
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <peerway/device.cuh>
#include <peerway/peerway.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using peerway::check;
using peerway::device::BFloat16;
using peerway::device::Block;
using peerway::device::Result;
using peerway::device::Word;

constexpr unsigned kHidden = 8192, kThreads = 512, kLayers = 20, kSamples = 51;

void cuda(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

__device__ float sum_of_block(float value) {
  __shared__ float of_warp[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (const float part : of_warp) sum += part;
  __syncthreads();
  return sum;
}

/// What a thread loads and stores at once.
struct alignas(16) Eight {
  __nv_bfloat16 at[8];
};

/// The root-mean-square norm of a row, by a block.
__device__ void normalise(const __nv_bfloat16* row, const __nv_bfloat16* weight, __nv_bfloat16* to) {
  constexpr unsigned kEach = kHidden / 8 / kThreads;
  Eight values[kEach], weights[kEach];
  float squares = 0;
  for (unsigned n = 0; n < kEach; ++n) {
    values[n] = reinterpret_cast<const Eight*>(row)[n * kThreads + threadIdx.x];
    weights[n] = reinterpret_cast<const Eight*>(weight)[n * kThreads + threadIdx.x];
    for (const float value : values[n].at) squares += value * value;
  }
  const float scale = rsqrtf(sum_of_block(squares) / kHidden + 1e-5f);
  for (unsigned n = 0; n < kEach; ++n) {
    for (unsigned k = 0; k < 8; ++k)
      values[n].at[k] = __float2bfloat16(static_cast<float>(values[n].at[k]) * scale *
                                         static_cast<float>(weights[n].at[k]));
    reinterpret_cast<Eight*>(to)[n * kThreads + threadIdx.x] = values[n];
  }
}

/// Block b has row b, in every launch; it counts its epochs itself.
__global__ void __launch_bounds__(kThreads)
    reduce_and_normalise(const __grid_constant__ pw_all_reduce_handle total, Word* epochs,
                         const __nv_bfloat16* partial, __nv_bfloat16* sum, const __nv_bfloat16* weight,
                         __nv_bfloat16* to) {
  const Word first = Word{blockIdx.x} * kHidden;
  const Word epoch = epochs[blockIdx.x] + 1;
  if (all_reduce(Block{}, total, epoch, reinterpret_cast<BFloat16*>(sum + first),
                 reinterpret_cast<const BFloat16*>(partial + first), kHidden, first) != Result::ok)
    return;
  if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
  normalise(sum + first, weight, to + first);
}

__global__ void __launch_bounds__(kThreads)
    normalise_rows(const __nv_bfloat16* sum, const __nv_bfloat16* weight, __nv_bfloat16* to) {
  normalise(sum + Word{blockIdx.x} * kHidden, weight, to + Word{blockIdx.x} * kHidden);
}

__global__ void fill(__nv_bfloat16* at, Word count, unsigned seed) {
  for (Word n = blockIdx.x * blockDim.x + threadIdx.x; n < count; n += Word{gridDim.x} * blockDim.x)
    at[n] = __float2bfloat16(static_cast<float>((n * 2654435761u + seed * 40503u) % 2000) / 1000 - 1);
}

class Layer {
 public:
  Layer(peerway::Team& team, peerway::Context& context, cudaStream_t stream, int gpu, unsigned rows)
      : team_(team),
        stream_(stream),
        gpu_(gpu),
        rows_(rows),
        bytes_(uint64_t{rows} * kHidden * 2),
        partial_(context.allocate(peerway::cuda(gpu), bytes_)),
        sum_(context.allocate(peerway::cuda(gpu), bytes_)),
        fused_(by_packets(context)),
        unfused_(all_reduce(context)),
        handle_(fused_.all_reduce_handle()) {
    cuda(cudaMalloc(&weight_, kHidden * 2));
    cuda(cudaMalloc(&to_, bytes_));
    cuda(cudaMalloc(&epochs_, rows * sizeof(Word)));
    cuda(cudaMemset(epochs_, 0, rows * sizeof(Word)));
    fill<<<64, 256, 0, stream>>>(in(partial_), bytes_ / 2, static_cast<unsigned>(team.rank()));
    fill<<<64, 256, 0, stream>>>(weight_, kHidden, 7);
    cuda(cudaStreamSynchronize(stream));
  }
  ~Layer() {
    for (void* memory : {static_cast<void*>(weight_), static_cast<void*>(to_), static_cast<void*>(epochs_)})
      cudaFree(memory);
  }
  Layer(const Layer&) = delete;

  void run(bool fused) {
    if (fused) {
      reduce_and_normalise<<<rows_, kThreads, 0, stream_>>>(handle_, epochs_, in(partial_), in(sum_), weight_,
                                                            to_);
    } else {
      check(unfused_.run(peerway::cuda_stream(stream_, gpu_)));
      normalise_rows<<<rows_, kThreads, 0, stream_>>>(in(sum_), weight_, to_);
    }
  }

  /// The median of the microseconds of one layer, in a graph of several.
  double median_us(bool fused) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (unsigned layer = 0; layer < kLayers; ++layer) run(fused);
    cuda(cudaStreamEndCapture(stream_, &graph));
    cuda(cudaGraphInstantiate(&ready, graph, 0));
    cudaEvent_t begin = nullptr, end = nullptr;
    cuda(cudaEventCreate(&begin));
    cuda(cudaEventCreate(&end));
    std::vector<float> us;
    for (unsigned sample = 0; sample < kSamples; ++sample) {
      team_.barrier();
      cuda(cudaEventRecord(begin, stream_));
      cuda(cudaGraphLaunch(ready, stream_));
      cuda(cudaEventRecord(end, stream_));
      cuda(cudaStreamSynchronize(stream_));
      float milliseconds = 0;
      cuda(cudaEventElapsedTime(&milliseconds, begin, end));
      us.push_back(1000 * milliseconds / kLayers);
    }
    check(fused_.status());
    check(unfused_.status());
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    std::ranges::nth_element(us, us.begin() + kSamples / 2);
    return us[kSamples / 2];
  }

  std::vector<unsigned char> result(bool fused) {
    run(fused);
    cuda(cudaStreamSynchronize(stream_));
    std::vector<unsigned char> bytes(bytes_);
    cuda(cudaMemcpy(bytes.data(), to_, bytes_, cudaMemcpyDefault));
    return bytes;
  }

 private:
  peerway::Plan all_reduce(peerway::Context& context) {
    return context.all_reduce(peerway::Element::bfloat16, sum_.all(), partial_.all(), peerway::Combine::sum);
  }
  peerway::Plan by_packets(peerway::Context& context) {  // kernels need them, whatever the table would choose
    context.use("plan/lines,plan/packets");
    peerway::Plan plan = all_reduce(context);
    context.use("route");
    return plan;
  }
  static __nv_bfloat16* in(const peerway::Region& region) {
    return static_cast<__nv_bfloat16*>(region.address());
  }

  peerway::Team& team_;
  cudaStream_t stream_;
  int gpu_;
  unsigned rows_;
  uint64_t bytes_;
  peerway::Region partial_, sum_;
  peerway::Plan fused_, unfused_;
  pw_all_reduce_handle handle_;
  __nv_bfloat16 *weight_ = nullptr, *to_ = nullptr;
  Word* epochs_ = nullptr;
};

int measure() {
  auto team = peerway::Team::from_launcher();
  int gpus = 0;
  cuda(cudaGetDeviceCount(&gpus));
  const int gpu = team.rank() % gpus;
  cuda(cudaSetDevice(gpu));
  cudaStream_t stream = nullptr;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  peerway::Context context(team);
  bool same = true;
  for (const unsigned rows : {1, 4, 16}) {
    Layer layer(team, context, stream, gpu, rows);
    same = same && layer.result(true) == layer.result(false);
    const double fused = layer.median_us(true), unfused = layer.median_us(false);
    if (team.rank() == 0)
      std::printf(
          "{\"app\": \"fused_norm\", \"ranks\": %d, \"gpus\": %d, \"rows\": %u, \"hidden\": %u, "
          "\"fused_us\": %.2f, \"unfused_us\": %.2f, \"same_bits\": %s}\n",
          team.size(), gpus, rows, kHidden, fused, unfused, same ? "true" : "false");
    team.barrier();
  }
  return same ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return measure();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
