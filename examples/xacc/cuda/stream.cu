// stream.c in CUDA by hand, for one GPU: a thread for each two elements, which it moves as one word.
//
//   nvcc -O3 -std=c++17 -arch=native --extended-lambda stream.cu -o stream && ./stream
#include <algorithm>
#include <cmath>
#include <vector>

#include "by_hand.cuh"

#ifndef N
#define N 10000000
#endif
#define TIMES 10
static_assert(N % 2 == 0, "two elements to a thread");

template <class Body>
__global__ void each(Body body) {
  const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < N / 2) body(i);
}
template <class Body>
void launch(Body body) {
  each<<<(N / 2 + 255) / 256, 256>>>(body);
}

static void show(const char* name, int arrays, double seconds) {
  std::fprintf(stderr, "%-6s %9.1f MB/s\n", name, 1e-6 * arrays * sizeof(double) * N / seconds);
}

int main() {
  const double scalar = 3;
  double2 *a, *b, *c;
  for (double2** array : {&a, &b, &c}) CHECK(cudaMalloc(array, N * sizeof(double)));
  launch([=] __device__(long i) { a[i] = {1, 1}, b[i] = {2, 2}, c[i] = {0, 0}; });
  double best[4] = {1e9, 1e9, 1e9, 1e9}, expected[3] = {1, 2, 0};
  for (int k = 0; k < TIMES; ++k) {
    double at[5] = {seconds_when_done()};
    launch([=] __device__(long i) { c[i] = a[i]; });
    at[1] = seconds_when_done();
    launch([=] __device__(long i) { b[i] = {scalar * c[i].x, scalar * c[i].y}; });
    at[2] = seconds_when_done();
    launch([=] __device__(long i) { c[i] = {a[i].x + b[i].x, a[i].y + b[i].y}; });
    at[3] = seconds_when_done();
    launch([=] __device__(long i) { a[i] = {b[i].x + scalar * c[i].x, b[i].y + scalar * c[i].y}; });
    at[4] = seconds_when_done();
    for (int n = 0; n < 4; ++n) best[n] = std::min(best[n], at[n + 1] - at[n]);
    expected[1] = scalar * expected[0];
    expected[2] = expected[0] + expected[1];
    expected[0] = expected[1] + scalar * expected[2];
  }
  std::vector<double> host(N);
  double wrong = 0;
  const double2* const arrays[] = {a, b, c};
  for (int n = 0; n < 3; ++n) {
    CHECK(cudaMemcpy(host.data(), arrays[n], N * sizeof(double), cudaMemcpyDefault));
    for (const double value : host) wrong = std::max(wrong, std::fabs(value / expected[n] - 1));
  }
  show("copy", 2, best[0]);
  show("scale", 2, best[1]);
  show("add", 3, best[2]);
  show("triad", 3, best[3]);
  std::puts(wrong < 1e-13 ? "all values are right" : "some values are wrong");
  return wrong < 1e-13 ? 0 : 1;
}
