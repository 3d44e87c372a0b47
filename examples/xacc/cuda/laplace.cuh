// What laplace.cu and laplace_mpi.cu share: the kernels, and what the host does with their results.
#pragma once

#include <cmath>

#include "by_hand.cuh"

#ifndef N
#define N 64
#endif

inline double exact(int i, int j) {
  const double x = i / (double)(N - 1), y = j / (double)(N - 1);
  return x * x - y * y;
}

constexpr int kColumns = 64, kRows = 4;  // of a block

/// Relaxes rows before `end`. The first blocks take kRows rows from `first`, and each next ones kRows rows
/// that begin `apart` rows later.
__global__ void relax(const double* __restrict__ u, double* __restrict__ next, unsigned long long* change,
                      int first, int apart, int end) {
  const int i = first + blockIdx.y * apart + threadIdx.y, j = 1 + blockIdx.x * kColumns + threadIdx.x;
  double mine = 0;
  if (i < end && j < N - 1) {
    const size_t at = (size_t)i * N + j;
    const double value = 0.25 * (u[at - N] + u[at + N] + u[at - 1] + u[at + 1]);
    next[at] = value;
    mine = fabs(value - u[at]);
  }
  const int id = threadIdx.y * kColumns + threadIdx.x;
  mine = combined(mine, [](double x, double y) { return fmax(x, y); }, id, kRows * kColumns);
  // The bits of doubles that are not negative are in the same order as their values.
  if (id == 0) atomicMax(change, (unsigned long long)__double_as_longlong(mine));
}

__global__ void copy(double* __restrict__ u, const double* __restrict__ next, int end) {
  const int i = 1 + blockIdx.y * kRows + threadIdx.y, j = 1 + blockIdx.x * kColumns + threadIdx.x;
  if (i < end && j < N - 1) u[(size_t)i * N + j] = next[(size_t)i * N + j];
}

constexpr int blocks_of(int points, int threads) { return (points + threads - 1) / threads; }

/// The change whose bits a kernel has combined.
inline double value_of(unsigned long long bits) {
  double value;
  static_assert(sizeof value == sizeof bits);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

inline void show(int done, double change, double error, double seconds) {
  std::printf("%d steps, change %.3e, error %.3e\n", done, change, error);
  std::fprintf(stderr, "%.3f s, %.1f million points a second\n", seconds,
               1e-6 * done * (N - 2.0) * (N - 2.0) / seconds);
}
