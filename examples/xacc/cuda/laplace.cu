// laplace.c in CUDA by hand, for one GPU: the same steps, with a copy of the new values, and the change of
// each step read by the host.
//
//   nvcc -O3 -std=c++17 -arch=native laplace.cu -o laplace && ./laplace [steps]
#include <cmath>
#include <vector>

#include "by_hand.cuh"

#ifndef N
#define N 64
#endif

static double exact(int i, int j) {
  const double x = i / (double)(N - 1), y = j / (double)(N - 1);
  return x * x - y * y;
}

constexpr int kColumns = 64, kRows = 4;  // of a block

__global__ void relax(const double* __restrict__ u, double* __restrict__ next, unsigned long long* change) {
  const int i = 1 + blockIdx.y * kRows + threadIdx.y, j = 1 + blockIdx.x * kColumns + threadIdx.x;
  double mine = 0;
  if (i < N - 1 && j < N - 1) {
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

__global__ void copy(double* __restrict__ u, const double* __restrict__ next) {
  const int i = 1 + blockIdx.y * kRows + threadIdx.y, j = 1 + blockIdx.x * kColumns + threadIdx.x;
  if (i < N - 1 && j < N - 1) u[(size_t)i * N + j] = next[(size_t)i * N + j];
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20000;
  const double limit = 1e-13;
  std::vector<double> host((size_t)N * N);
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j)
      host[(size_t)i * N + j] = i == 0 || j == 0 || i == N - 1 || j == N - 1 ? exact(i, j) : 0.0;
  double *u, *next;
  unsigned long long *change_on_gpu, *bits;
  CHECK(cudaMalloc(&u, host.size() * sizeof(double)));
  CHECK(cudaMalloc(&next, host.size() * sizeof(double)));
  CHECK(cudaMalloc(&change_on_gpu, sizeof *change_on_gpu));
  CHECK(cudaMallocHost(&bits, sizeof *bits));
  CHECK(cudaMemcpy(u, host.data(), host.size() * sizeof(double), cudaMemcpyDefault));
  const dim3 block(kColumns, kRows), grid((N - 2 + kColumns - 1) / kColumns, (N - 2 + kRows - 1) / kRows);
  double change = 1;
  int done = 0;
  const double start = seconds_when_done();
  for (; done < steps && change > limit; ++done) {
    CHECK(cudaMemsetAsync(change_on_gpu, 0, sizeof *change_on_gpu));
    relax<<<grid, block>>>(u, next, change_on_gpu);
    CHECK(cudaMemcpyAsync(bits, change_on_gpu, sizeof *bits, cudaMemcpyDefault));
    copy<<<grid, block>>>(u, next);
    CHECK(cudaStreamSynchronize(nullptr));
    static_assert(sizeof change == sizeof *bits);
    __builtin_memcpy(&change, bits, sizeof change);
  }
  const double seconds = seconds_when_done() - start;
  CHECK(cudaMemcpy(host.data(), u, host.size() * sizeof(double), cudaMemcpyDefault));
  double error = 0;
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) error = std::fmax(error, std::fabs(host[(size_t)i * N + j] - exact(i, j)));
  std::printf("%d steps, change %.3e, error %.3e\n", done, change, error);
  std::fprintf(stderr, "%.3f s, %.1f million points a second\n", seconds,
               1e-6 * done * (N - 2.0) * (N - 2.0) / seconds);
  return change > limit || error < 1e-9 ? 0 : 1;
}
