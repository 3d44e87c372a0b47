// What himeno.cu and himeno_mpi.cu share: the kernels and their memory.
#pragma once

#include "by_hand.cuh"

#ifndef MI
#define MI 33
#define MJ 33
#define MK 65
#endif
#ifndef PLANES
#define PLANES MI  // of the grid on this GPU
#endif
#ifndef STEPS
#define STEPS 30
#endif

constexpr size_t kPoints = (size_t)PLANES * MJ * MK;
constexpr int kAlong = 64, kAcross = 4;  // threads of a block in k and j

struct Grid {
  float *p, *next, *bound, *source, *a, *b, *c;
};

__device__ size_t at(int i, int j, int k) { return ((size_t)i * MJ + j) * MK + k; }

/// Starts the planes of this GPU, whose first is plane `offset` of the grid.
__global__ void start(Grid g, int offset) {
  const int k = blockIdx.x * kAlong + threadIdx.x, j = blockIdx.y * kAcross + threadIdx.y, i = blockIdx.z;
  if (k >= MK || j >= MJ) return;
  const size_t n = at(i, j, k);
  for (int m = 0; m < 3; ++m) g.a[m * kPoints + n] = 1, g.b[m * kPoints + n] = 0, g.c[m * kPoints + n] = 1;
  g.a[3 * kPoints + n] = 1.0f / 6;
  g.p[n] = g.next[n] = (float)((offset + i) * (offset + i)) / ((MI - 1) * (MI - 1));
  g.source[n] = 0;
  g.bound[n] = 1;
}

/// Relaxes a plane for each blockIdx.z; the first is plane `first`, and they are `apart` planes apart.
__global__ void relax(const float* __restrict__ p, float* __restrict__ next, const float* __restrict__ bound,
                      const float* __restrict__ source, const float* __restrict__ a,
                      const float* __restrict__ b, const float* __restrict__ c, double* gosa, int first,
                      int apart) {
  const int k = 1 + blockIdx.x * kAlong + threadIdx.x, j = 1 + blockIdx.y * kAcross + threadIdx.y,
            i = first + blockIdx.z * apart;
  double mine = 0;
  if (k < MK - 1 && j < MJ - 1) {
    constexpr size_t kI = (size_t)MJ * MK, kJ = MK;
    const size_t n = at(i, j, k);
    const float all = a[n] * p[n + kI] + a[kPoints + n] * p[n + kJ] + a[2 * kPoints + n] * p[n + 1] +
                      b[n] * (p[n + kI + kJ] - p[n + kI - kJ] - p[n - kI + kJ] + p[n - kI - kJ]) +
                      b[kPoints + n] * (p[n + kJ + 1] - p[n - kJ + 1] - p[n + kJ - 1] + p[n - kJ - 1]) +
                      b[2 * kPoints + n] * (p[n + kI + 1] - p[n - kI + 1] - p[n + kI - 1] + p[n - kI - 1]) +
                      c[n] * p[n - kI] + c[kPoints + n] * p[n - kJ] + c[2 * kPoints + n] * p[n - 1] +
                      source[n];
    const float change = (all * a[3 * kPoints + n] - p[n]) * bound[n];
    mine = change * change;
    next[n] = p[n] + 0.8f * change;
  }
  const int id = threadIdx.y * kAlong + threadIdx.x;
  mine = combined(mine, [](double x, double y) { return x + y; }, id, kAlong * kAcross);
  if (id == 0) atomicAdd(gosa, mine);
}

__global__ void copy(float* __restrict__ p, const float* __restrict__ next) {
  const int k = 1 + blockIdx.x * kAlong + threadIdx.x, j = 1 + blockIdx.y * kAcross + threadIdx.y,
            i = 1 + blockIdx.z;
  if (k < MK - 1 && j < MJ - 1) p[at(i, j, k)] = next[at(i, j, k)];
}

/// The blocks for so many points in i, j and k.
inline dim3 blocks_of(int planes, int across, int along) {
  return dim3((along + kAlong - 1) / kAlong, (across + kAcross - 1) / kAcross, planes);
}

inline Grid new_grid() {
  Grid g{};
  for (float** field : {&g.p, &g.next, &g.bound, &g.source})
    CHECK(cudaMalloc(field, kPoints * sizeof(float)));
  CHECK(cudaMalloc(&g.a, 4 * kPoints * sizeof(float)));
  CHECK(cudaMalloc(&g.b, 3 * kPoints * sizeof(float)));
  CHECK(cudaMalloc(&g.c, 3 * kPoints * sizeof(float)));
  return g;
}

inline void show(double gosa, double seconds) {
  std::printf("gosa %.6e after %d steps\n", gosa, STEPS);
  std::fprintf(stderr, "%.1f MFLOPS\n", 34e-6 * (MI - 2.0) * (MJ - 2.0) * (MK - 2.0) * (STEPS - 1) / seconds);
}
