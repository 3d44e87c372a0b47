// cg.c in CUDA by hand, for one GPU: a warp for each row of the matrix, and a CUDA graph for each solve,
// whose kernels begin while the kernel before ends (programmatic dependent launch). The host waits at the
// end.
//
//   nvcc -O3 -std=c++17 -arch=native cg.cu -o cg && ./cg           (class S; -DCLASS_W, _A, _B, _C: larger
//   ones)
#include "cg.cuh"

struct Vectors {
  double *x, *z, *p, *q, *r;
};
/// The scalar products of a solve; those of step i are rho[i] = r·r before it, and pq[i] = p·q.
struct Sums {
  double rho[STEPS + 1], pq[STEPS], xz, zz;
};

/// Each kernel of the graph calls this before it touches what another kernel writes. Nothing that kernels
/// write may be __restrict__: such reads could move to before the call.
__device__ void wait_for_kernel_before() {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

__device__ void add_of_block(double* sum, double mine) {
  mine = combined(mine, [](double x, double y) { return x + y; }, threadIdx.x, kThreads);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}

/// z = 0, p = r = x, and rho[0]
__global__ void start(Vectors v, Sums* sums) {
  const int i = thread_of_grid();
  double x = 0;
  if (i < NA) x = v.x[i], v.z[i] = 0, v.p[i] = v.r[i] = x;
  add_of_block(&sums->rho[0], x * x);
}

/// q = A p, and p·q
__global__ void __launch_bounds__(kThreads) multiply(Matrix a, Vectors v, Sums* sums, int step) {
  wait_for_kernel_before();
  double mine = 0;
  for (int row = thread_of_grid() / 32; row < NA; row += gridDim.x * (kThreads / 32)) {
    double sum = product(a.column, a.element, v.p, __ldg(a.begin + row), __ldg(a.begin + row + 1));
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
    if (threadIdx.x % 32 == 0) v.q[row] = sum, mine += sum * v.p[row];
  }
  add_of_block(&sums->pq[step], mine);
}

/// r -= alpha q, and the next rho
__global__ void advance(Vectors v, Sums* sums, int step) {
  wait_for_kernel_before();
  const int i = thread_of_grid();
  double r = 0;
  if (i < NA) v.r[i] = r = v.r[i] - sums->rho[step] / sums->pq[step] * v.q[i];
  add_of_block(&sums->rho[step + 1], r * r);
}

/// z += alpha p, p = r + beta p
__global__ void turn(Vectors v, const Sums* sums, int step) {
  wait_for_kernel_before();
  const int i = thread_of_grid();
  if (i >= NA) return;
  const double rho = sums->rho[step], p = v.p[i];
  v.z[i] += rho / sums->pq[step] * p;
  v.p[i] = v.r[i] + sums->rho[step + 1] / rho * p;
}

__global__ void dot(const double* v, const double* w, double* sum) {
  wait_for_kernel_before();
  const int i = thread_of_grid();
  add_of_block(sum, i < NA ? v[i] * w[i] : 0);
}

/// x = z / |z|
__global__ void scale(Vectors v, const Sums* sums) {
  wait_for_kernel_before();
  const int i = thread_of_grid();
  if (i < NA) v.x[i] = v.z[i] / sqrt(sums->zz);
}

/// Launches a kernel whose blocks may start before the kernel before has ended.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int blocks, cudaStream_t stream, Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks, config.blockDim = kThreads, config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// z: an approximation of A^-1 x; then x = z / |z|
void iterate(const Matrix& a, const Vectors& v, Sums* sums, cudaStream_t stream, int of_rows) {
  const int blocks = (NA + kThreads - 1) / kThreads;
  CHECK(cudaMemsetAsync(sums, 0, sizeof *sums, stream));
  start<<<blocks, kThreads, 0, stream>>>(v, sums);
  for (int step = 0; step < STEPS; ++step) {
    launch(multiply, of_rows, stream, a, v, sums, step);
    launch(advance, blocks, stream, v, sums, step);
    launch(turn, blocks, stream, v, sums, step);
  }
  launch(dot, blocks, stream, v.x, v.z, &sums->xz);
  launch(dot, blocks, stream, v.z, v.z, &sums->zz);
  launch(scale, blocks, stream, v, sums);
}

/// What `work` does with a stream, as a graph that is on the GPU.
template <class Work>
cudaGraphExec_t graph_of(Work work, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  work();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphUpload(executable, stream));
  return executable;
}

int main() {
  make_matrix();
  const std::vector<double> ones(NA, 1.0);
  const Matrix a{on_gpu(begin, NA + 1), on_gpu(column, begin[NA]), on_gpu(element, begin[NA])};
  Vectors v{};
  for (double** vector : {&v.x, &v.z, &v.p, &v.q, &v.r}) *vector = on_gpu(ones.data(), NA);
  Sums sums{}, *const sums_on_gpu = on_gpu(&sums, 1);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  const auto work = [&, blocks = blocks_of_rows(multiply, NA)] {
    iterate(a, v, sums_on_gpu, stream, blocks);
  };
  work();  // NPB times the iterations after the first, from the same x
  const cudaGraphExec_t graph = graph_of(work, stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(v.x, ones.data(), NA * sizeof(double), cudaMemcpyDefault));
  const double from = seconds_when_done();
  for (int k = 0; k < ITERATIONS; ++k) CHECK(cudaGraphLaunch(graph, stream));
  const double seconds = seconds_when_done() - from;
  CHECK(cudaMemcpy(&sums, sums_on_gpu, sizeof sums, cudaMemcpyDefault));
  return report(sums.xz, seconds);
}
