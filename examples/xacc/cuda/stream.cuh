// What stream.cu and stream_mpi.cu share: the loops, on the elements of one GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "by_hand.cuh"

#ifndef N
#define N 10000000
#endif
#ifndef HERE
#define HERE N  // elements on this GPU
#endif
#define TIMES 10
static_assert(HERE % 2 == 0, "two elements to a thread");

template <class Body>
__global__ void each(Body body) {
  const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < HERE / 2) body(i);
}
template <class Body>
void launch(Body body) {
  each<<<(HERE / 2 + 255) / 256, 256>>>(body);
}

inline void show(const char* name, int arrays, double seconds) {
  std::fprintf(stderr, "%-6s %9.1f MB/s\n", name, 1e-6 * arrays * sizeof(double) * N / seconds);
}

struct Result {
  double best[4] = {1e9, 1e9, 1e9, 1e9};  // seconds of copy, scale, add and triad
  double wrong = 0;                       // the largest relative error
};

/// Runs the loops; `now` gives the time when all work so far is done.
template <class Now>
Result run(Now now) {
  Result result;
  const double scalar = 3;
  double2 *a, *b, *c;
  for (double2** array : {&a, &b, &c}) CHECK(cudaMalloc(array, HERE * sizeof(double)));
  launch([=] __device__(long i) { a[i] = {1, 1}, b[i] = {2, 2}, c[i] = {0, 0}; });
  double expected[3] = {1, 2, 0};
  for (int k = 0; k < TIMES; ++k) {
    double at[5] = {now()};
    launch([=] __device__(long i) { c[i] = a[i]; });
    at[1] = now();
    launch([=] __device__(long i) { b[i] = {scalar * c[i].x, scalar * c[i].y}; });
    at[2] = now();
    launch([=] __device__(long i) { c[i] = {a[i].x + b[i].x, a[i].y + b[i].y}; });
    at[3] = now();
    launch([=] __device__(long i) { a[i] = {b[i].x + scalar * c[i].x, b[i].y + scalar * c[i].y}; });
    at[4] = now();
    for (int n = 0; n < 4; ++n) result.best[n] = std::min(result.best[n], at[n + 1] - at[n]);
    expected[1] = scalar * expected[0];
    expected[2] = expected[0] + expected[1];
    expected[0] = expected[1] + scalar * expected[2];
  }
  std::vector<double> host(HERE);
  const double2* const arrays[] = {a, b, c};
  for (int n = 0; n < 3; ++n) {
    CHECK(cudaMemcpy(host.data(), arrays[n], HERE * sizeof(double), cudaMemcpyDefault));
    for (const double value : host) result.wrong = std::max(result.wrong, std::fabs(value / expected[n] - 1));
  }
  return result;
}

/// Prints the result; gives the status of the program.
inline int report(const Result& result) {
  show("copy", 2, result.best[0]);
  show("scale", 2, result.best[1]);
  show("add", 3, result.best[2]);
  show("triad", 3, result.best[3]);
  std::puts(result.wrong < 1e-13 ? "all values are right" : "some values are wrong");
  return result.wrong < 1e-13 ? 0 : 1;
}
