// laplace.c in CUDA by hand, for one GPU: the same steps, with a copy of the new values, and the change of
// each step read by the host.
//
//   nvcc -O3 -std=c++17 -arch=native laplace.cu -o laplace && ./laplace [steps]
#include <vector>

#include "laplace.cuh"

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
  const dim3 block(kColumns, kRows), grid(blocks_of(N - 2, kColumns), blocks_of(N - 2, kRows));
  double change = 1;
  int done = 0;
  const double start = seconds_when_done();
  for (; done < steps && change > limit; ++done) {
    CHECK(cudaMemsetAsync(change_on_gpu, 0, sizeof *change_on_gpu));
    relax<<<grid, block>>>(u, next, change_on_gpu, 1, kRows, N - 1);
    CHECK(cudaMemcpyAsync(bits, change_on_gpu, sizeof *bits, cudaMemcpyDefault));
    copy<<<grid, block>>>(u, next, N - 1);
    CHECK(cudaStreamSynchronize(nullptr));
    change = value_of(*bits);
  }
  const double seconds = seconds_when_done() - start;
  CHECK(cudaMemcpy(host.data(), u, host.size() * sizeof(double), cudaMemcpyDefault));
  double error = 0;
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) error = std::fmax(error, std::fabs(host[(size_t)i * N + j] - exact(i, j)));
  show(done, change, error, seconds);
  return change > limit || error < 1e-9 ? 0 : 1;
}
