// The same sums by MPI_Allreduce.
#include <mpi.h>

#include "rounds.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const uint64_t bytes : kSizes) {
    const std::vector<double> from(bytes / sizeof(double));
    std::vector<double> to(from.size());
    measure("mpi", bytes, rank == 0, [&] {
      MPI_Allreduce(from.data(), to.data(), static_cast<int>(from.size()), MPI_DOUBLE, MPI_SUM,
                    MPI_COMM_WORLD);
    });
  }
  MPI_Finalize();
}
