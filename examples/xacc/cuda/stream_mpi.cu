// stream.c in CUDA and MPI by hand: each rank has a part of the elements on its GPU, and all wait for each
// other between the loops.
//
//   nvcc -O3 -std=c++17 -arch=native --extended-lambda -ccbin mpicxx -DRANKS=2 stream_mpi.cu -o stream
//   mpirun -n 2 ./stream
#include "ranks.cuh"

#define HERE (N / RANKS)
#include "stream.cuh"
static_assert(N % (2 * RANKS) == 0, "every rank has as many elements");

int main(int argc, char** argv) {
  const Mpi mpi(&argc, &argv);
  Result result = run(seconds_when_all_done);
  result.wrong = max_of_ranks(result.wrong);
  return mpi.rank() == 0 ? report(result) : 0;
}
