// himeno.c in CUDA by hand, for one GPU: a thread for each point, neighbours in k beside each other.
//
//   nvcc -O3 -std=c++17 -arch=native himeno.cu -o himeno && ./himeno
#include "himeno.cuh"

int main() {
  const Grid g = new_grid();
  double *sum, *read;
  CHECK(cudaMalloc(&sum, sizeof *sum));
  CHECK(cudaMallocHost(&read, sizeof *read));
  const dim3 block(kAlong, kAcross);
  start<<<blocks_of(MI, MJ, MK), block>>>(g, 0);
  const dim3 inner = blocks_of(MI - 2, MJ - 2, MK - 2);
  const auto jacobi = [&] {
    CHECK(cudaMemsetAsync(sum, 0, sizeof *sum));
    relax<<<inner, block>>>(g.p, g.next, g.bound, g.source, g.a, g.b, g.c, sum, 1, 1);
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
  show(gosa, seconds);
  return gosa < first ? 0 : 1;
}
