// laplace.c in CUDA and MPI by hand: each rank has a block of rows on its GPU. It computes the rows that its
// neighbours need first, and sends them while it computes the others. Needs CUDA-aware MPI.
//
//   nvcc -O3 -std=c++17 -arch=native -ccbin mpicxx -DRANKS=2 laplace_mpi.cu -o laplace
//   mpirun -n 2 ./laplace [steps]
#include <vector>

#include "laplace.cuh"
#include "ranks.cuh"

int main(int argc, char** argv) {
  const Mpi mpi(&argc, &argv);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20000;
  const double limit = 1e-13;
  const Rows rows = inner_rows(mpi.rank(), N, 2 * kRows + 1);
  const int last = rows.count;  // of the rows that this rank computes, which begin with row 1
  std::vector<double> host((size_t)(rows.count + 2) * N);
  const auto row_of_grid = [&](int i) { return rows.first - 1 + i; };
  for (int i = 0; i < rows.count + 2; ++i)
    for (int j = 0; j < N; ++j) {
      const int row = row_of_grid(i);
      const bool boundary = row == 0 || j == 0 || row == N - 1 || j == N - 1;
      host[(size_t)i * N + j] = boundary ? exact(row, j) : 0.0;
    }
  double *u, *next;
  unsigned long long *change_on_gpu, *bits;
  for (double** array : {&u, &next}) {  // both have the boundary, as rows of `next` become halos of `u`
    CHECK(cudaMalloc(array, host.size() * sizeof(double)));
    CHECK(cudaMemcpy(*array, host.data(), host.size() * sizeof(double), cudaMemcpyDefault));
  }
  CHECK(cudaMalloc(&change_on_gpu, sizeof *change_on_gpu));
  CHECK(cudaMallocHost(&bits, sizeof *bits));
  CHECK(cudaMemset(change_on_gpu, 0, sizeof *change_on_gpu));
  cudaEvent_t change_is_read;
  CHECK(cudaEventCreateWithFlags(&change_is_read, cudaEventDisableTiming));
  const dim3 block(kColumns, kRows);
  const auto grid = [](int of_rows) { return dim3(blocks_of(N - 2, kColumns), of_rows); };
  const auto edges = [&](cudaStream_t stream) {
    relax<<<grid(2), block, 0, stream>>>(u, next, change_on_gpu, 1, last - kRows, last + 1);
  };
  const auto inside = [&] {
    const int first = 1 + kRows, end = last + 1 - kRows;
    relax<<<grid(blocks_of(end - first, kRows)), block>>>(u, next, change_on_gpu, first, kRows, end);
  };
  const auto rest = [&] {
    CHECK(cudaMemcpyAsync(bits, change_on_gpu, sizeof *bits, cudaMemcpyDefault));
    CHECK(cudaEventRecord(change_is_read));
    CHECK(cudaMemsetAsync(change_on_gpu, 0, sizeof *change_on_gpu));
    copy<<<grid(blocks_of(rows.count, kRows)), block>>>(u, next, last + 1);
  };
  Halo halo(mpi.rank(), u, next, N, rows.count);
  double change = 1;
  int done = 0;
  const double start = seconds_when_all_done();
  for (; done < steps && change > limit; ++done) {
    halo.exchange(edges, inside, rest);
    CHECK(cudaEventSynchronize(change_is_read));
    change = max_of_ranks(value_of(*bits));
  }
  const double seconds = seconds_when_all_done() - start;
  CHECK(cudaMemcpy(host.data(), u, host.size() * sizeof(double), cudaMemcpyDefault));
  double error = 0;
  for (int i = 1; i <= last; ++i)
    for (int j = 0; j < N; ++j)
      error = std::fmax(error, std::fabs(host[(size_t)i * N + j] - exact(row_of_grid(i), j)));
  error = max_of_ranks(error);
  if (mpi.rank() == 0) show(done, change, error, seconds);
  return change > limit || error < 1e-9 ? 0 : 1;
}
