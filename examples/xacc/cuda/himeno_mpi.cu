// himeno.c in CUDA and MPI by hand: each rank has a block of planes on its GPU. It computes the planes that
// its neighbours need first, and sends them while it computes the others. Needs CUDA-aware MPI.
//
//   nvcc -O3 -std=c++17 -arch=native -ccbin mpicxx -DRANKS=2 himeno_mpi.cu -o himeno && mpirun -n 2 ./himeno
#include "ranks.cuh"

#define PLANES ((MI + RANKS - 1) / RANKS + 2)  // a block and its halos
#include "himeno.cuh"

int main(int argc, char** argv) {
  const Mpi mpi(&argc, &argv);
  const Rows planes = inner_rows(mpi.rank(), MI, 3);
  const int last = planes.count;  // of the planes that this rank computes, which begin with plane 1
  const Grid g = new_grid();
  double *sum, *read;
  CHECK(cudaMalloc(&sum, sizeof *sum));
  CHECK(cudaMallocHost(&read, sizeof *read));
  CHECK(cudaMemset(sum, 0, sizeof *sum));
  cudaEvent_t sum_is_read;
  CHECK(cudaEventCreateWithFlags(&sum_is_read, cudaEventDisableTiming));
  const dim3 block(kAlong, kAcross);
  start<<<blocks_of(planes.count + 2, MJ, MK), block>>>(g, planes.first - 1);
  const auto relaxed = [&](int first, int apart, int count, cudaStream_t stream) {
    relax<<<blocks_of(count, MJ - 2, MK - 2), block, 0, stream>>>(g.p, g.next, g.bound, g.source, g.a, g.b,
                                                                  g.c, sum, first, apart);
  };
  const auto edges = [&](cudaStream_t stream) { relaxed(1, last - 1, 2, stream); };
  const auto inside = [&] { relaxed(2, 1, last - 2, nullptr); };
  const auto rest = [&] {
    CHECK(cudaMemcpyAsync(read, sum, sizeof *read, cudaMemcpyDefault));
    CHECK(cudaEventRecord(sum_is_read));
    CHECK(cudaMemsetAsync(sum, 0, sizeof *sum));
    copy<<<blocks_of(planes.count, MJ - 2, MK - 2), block>>>(g.p, g.next);
  };
  Halo halo(mpi.rank(), g.p, g.next, (size_t)MJ * MK, planes.count);
  const auto jacobi = [&] {
    halo.exchange(edges, inside, rest);
    CHECK(cudaEventSynchronize(sum_is_read));
    double gosa = *read;
    sum_of_ranks(&gosa, 1);
    return gosa;
  };
  const double first = jacobi();
  double gosa = first;
  const double begin = seconds_when_all_done();
  for (int step = 1; step < STEPS; ++step) gosa = jacobi();
  const double seconds = seconds_when_all_done() - begin;
  if (mpi.rank() == 0) show(gosa, seconds);
  return gosa < first ? 0 : 1;
}
