// himeno.c in CUDA by hand, for one GPU: a thread for each point, neighbours in k beside each other.
//
//   nvcc -O3 -std=c++17 -arch=native himeno.cu -o himeno && ./himeno
#include "by_hand.cuh"

#ifndef MI
#define MI 33
#define MJ 33
#define MK 65
#endif
#define STEPS 30

constexpr size_t kPoints = (size_t)MI * MJ * MK;
constexpr int kAlong = 64, kAcross = 4;  // threads of a block in k and j

struct Grid {
  float *p, *next, *bound, *source, *a, *b, *c;
};

__device__ size_t at(int i, int j, int k) { return ((size_t)i * MJ + j) * MK + k; }

__global__ void start(Grid g) {
  const int k = blockIdx.x * kAlong + threadIdx.x, j = blockIdx.y * kAcross + threadIdx.y, i = blockIdx.z;
  if (k >= MK || j >= MJ) return;
  const size_t n = at(i, j, k);
  for (int m = 0; m < 3; ++m) g.a[m * kPoints + n] = 1, g.b[m * kPoints + n] = 0, g.c[m * kPoints + n] = 1;
  g.a[3 * kPoints + n] = 1.0f / 6;
  g.p[n] = (float)(i * i) / ((MI - 1) * (MI - 1));
  g.source[n] = 0;
  g.bound[n] = 1;
}

__global__ void relax(const float* __restrict__ p, float* __restrict__ next, const float* __restrict__ bound,
                      const float* __restrict__ source, const float* __restrict__ a,
                      const float* __restrict__ b, const float* __restrict__ c, double* gosa) {
  const int k = 1 + blockIdx.x * kAlong + threadIdx.x, j = 1 + blockIdx.y * kAcross + threadIdx.y,
            i = 1 + blockIdx.z;
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

int main() {
  Grid g{};
  for (float** field : {&g.p, &g.next, &g.bound, &g.source})
    CHECK(cudaMalloc(field, kPoints * sizeof(float)));
  CHECK(cudaMalloc(&g.a, 4 * kPoints * sizeof(float)));
  CHECK(cudaMalloc(&g.b, 3 * kPoints * sizeof(float)));
  CHECK(cudaMalloc(&g.c, 3 * kPoints * sizeof(float)));
  double *sum, *read;
  CHECK(cudaMalloc(&sum, sizeof *sum));
  CHECK(cudaMallocHost(&read, sizeof *read));
  const dim3 block(kAlong, kAcross);
  const auto blocks = [](int points, int threads) { return (unsigned)((points + threads - 1) / threads); };
  start<<<dim3(blocks(MK, kAlong), blocks(MJ, kAcross), MI), block>>>(g);
  const dim3 inner(blocks(MK - 2, kAlong), blocks(MJ - 2, kAcross), MI - 2);
  const auto jacobi = [&] {
    CHECK(cudaMemsetAsync(sum, 0, sizeof *sum));
    relax<<<inner, block>>>(g.p, g.next, g.bound, g.source, g.a, g.b, g.c, sum);
    CHECK(cudaMemcpyAsync(read, sum, sizeof *read, cudaMemcpyDefault));
    copy<<<inner, block>>>(g.p, g.next);
    CHECK(cudaStreamSynchronize(nullptr));
    return *read;
  };
  const double first = jacobi();
  double gosa = first;
  const double begin = seconds_when_done();
  for (int step = 1; step < STEPS; ++step) gosa = jacobi();
  const double seconds = seconds_when_done() - begin;
  std::printf("gosa %.6e after %d steps\n", gosa, STEPS);
  std::fprintf(stderr, "%.1f MFLOPS\n", 34e-6 * (MI - 2.0) * (MJ - 2.0) * (MK - 2.0) * (STEPS - 1) / seconds);
  return gosa < first ? 0 : 1;
}
