/* Rank 1 is killed while it waits for a message that rank 0 never sends. */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

static void die(int number) {
  (void)number;
  kill(getpid(), SIGKILL);
}

int main(int argc, char** argv) {
  int rank, value = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 100; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    signal(SIGALRM, die);
    alarm(1);
  }
  MPI_Recv(&value, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
