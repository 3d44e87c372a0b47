// What cg.cu and cg_mpi.cu share: the matrix on the GPU, and how a warp multiplies a row.
#pragma once

#include <cmath>
#include <vector>

#include "../cg_problem.h"
#include "by_hand.cuh"

constexpr int kThreads = 256;  // of a block
constexpr int kAtOnce = 4;     // elements that a lane reads before it uses them

struct Matrix {
  const int *begin, *column;
  const double* element;
};
__device__ int thread_of_grid() { return blockIdx.x * kThreads + threadIdx.x; }

/// The lane's part of a row's product with p. Elements are read once a step, so they leave the caches to p.
__device__ double product(const int* __restrict__ column, const double* __restrict__ element, const double* p,
                          int first, int last) {
  double sum = 0;
  for (int e = first + (int)threadIdx.x % 32; e < last; e += 32 * kAtOnce) {
    int at[kAtOnce];
    double factor[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const bool in_row = e + 32 * k < last;
      at[k] = in_row ? __ldcs(column + e + 32 * k) : 0;
      factor[k] = in_row ? __ldcs(element + e + 32 * k) : 0;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) sum += factor[k] * p[at[k]];
  }
  return sum;
}

/// As many blocks of a kernel as run at once, or fewer if each warp then has one row.
template <class Kernel>
int blocks_of_rows(Kernel kernel, int rows) {
  int of_one = 0, device = 0, multiprocessors = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel, kThreads, 0));
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const int needed = (rows + kThreads / 32 - 1) / (kThreads / 32);
  return needed < of_one * multiprocessors ? needed : of_one * multiprocessors;
}

template <class T>
T* on_gpu(const T* host, size_t count) {
  T* copy;
  CHECK(cudaMalloc(&copy, count * sizeof(T)));
  CHECK(cudaMemcpy(copy, host, count * sizeof(T), cudaMemcpyDefault));
  return copy;
}

/// Prints the result; gives the status of the program.
inline int report(double xz, double seconds) {
  const double zeta = SHIFT + 1 / xz, error = std::fabs(zeta - ZETA) / ZETA;
  std::printf("zeta %.10f, %s\n", zeta, error < 1e-10 ? "as published" : "not as published");
  std::fprintf(stderr, "%.1f Mop/s\n", OPERATIONS / seconds / 1e6);
  return error < 1e-10 ? 0 : 1;
}
