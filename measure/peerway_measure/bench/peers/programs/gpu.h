// What the CUDA programs share: how they begin, this rank's GPU, a stream, checked calls, and the pack
// kernels launched in stream order. Compiled by nvcc.
#ifndef PEERS_GPU_H
#define PEERS_GPU_H

#include <cuda_runtime.h>

#include "launch.h"
#include "oob.h"
#include "pack.cu"

struct gpu {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, end = nullptr;
  cudaDeviceProp properties{};
};

inline void gpu_check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) die("%s failed: %s", call, cudaGetErrorString(error));
}

// Makes the GPU that `devices` ("0,1,...", one a rank) names for `rank` the current one.
inline gpu gpu_open(const char* devices, int rank) {
  for (int i = 0; i < rank; ++i) {
    devices = strchr(devices, ',');
    if (!devices++) die("rank %d has no GPU in the list of devices", rank);
  }
  gpu g;
  int ordinal = atoi(devices);
  gpu_check(cudaSetDevice(ordinal), "cudaSetDevice");
  gpu_check(cudaGetDeviceProperties(&g.properties, ordinal), "cudaGetDeviceProperties");
  gpu_check(cudaStreamCreateWithFlags(&g.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  gpu_check(cudaEventCreate(&g.start), "cudaEventCreate");
  gpu_check(cudaEventCreate(&g.end), "cudaEventCreate");
  return g;
}

inline void gpu_finish(const gpu& g) { gpu_check(cudaStreamSynchronize(g.stream), "cudaStreamSynchronize"); }

inline void gpu_copy(void* to, const void* from, size_t bytes) {
  gpu_check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  gpu_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

// Between `packed` and the blocks of `array`, in stream order.
inline void gpu_copy_rows(const gpu& g, void* packed, void* array, shape s, bool unpack) {
  void* to = unpack ? array : packed;
  const void* from = unpack ? packed : array;
  row_launch l = launch_of(s, to, from, unpack, g.properties.multiProcessorCount);
  auto kernel = l.word == 16  ? copy_rows_16
                : l.word == 8 ? copy_rows_8
                : l.word == 4 ? copy_rows_4
                              : copy_rows_1;
  kernel<<<dim3(l.blocks[0], l.blocks[1]), dim3(l.threads[0], l.threads[1]), 0, g.stream>>>(
      to, from, l.rows, l.words, l.to_pitch, l.from_pitch);
  gpu_check(cudaGetLastError(), "the pack kernel");
}

// What every program of this kind begins with; its own struct derives from it.
struct gpu_program {
  program base{};
  oob ranks{};
  gpu device;
  char library[64] = "";
};

// Meets the other ranks and takes this rank's GPU. The version goes into `library`.
inline void gpu_program_open(gpu_program* p, const operations* can, int argc, char** argv) {
  p->ranks = oob_open(argc, argv);
  p->device = gpu_open(option(argc, argv, "--devices", "0,1"), p->ranks.rank);
  p->base.can = can;
  p->base.rank = p->ranks.rank;
  p->base.ranks = p->ranks.ranks;
  p->base.library = p->library;
  p->base.device = p->device.properties.name;
}

inline void gpu_program_copy(program*, void* to, const void* from, size_t bytes) {
  gpu_copy(to, from, bytes);
}

inline void gpu_program_maximum(program* base, double* values, long n) {
  oob_maximum(&reinterpret_cast<gpu_program*>(base)->ranks, values, n);
}

// Round trips (or exchanges, or gets) in stream order behind one sample: one synchronisation of the host is
// shared by all, as it is in a program that queues its steps.
inline long gpu_batch(const bench_case* c) {
  if (c->how == EXCHANGE || !strcmp(c->test, "plan_latency")) return c->bytes <= 65536 ? 200 : 20;
  if (c->how != PING_PONG && c->how != GET_EACH) return 1;
  return c->bytes <= 65536 ? 20 : c->bytes <= 4u << 20 ? 5 : 1;
}

#endif
