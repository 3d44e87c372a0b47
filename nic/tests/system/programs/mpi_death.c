/* An MPI program whose rank 1 is killed while all others send to it. They handle errors as return values,
 * and print which one ended their sends. No rank waits for a message of the dead rank, for which MPI makes
 * no promise. Usage: mpi_death [MESSAGE IN BYTES] */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kRounds = 50, kVictim = 1 };

int main(int argc, char** argv) {
  const int bytes = argc > 1 ? atoi(argv[1]) : 1000;
  int rank, ranks, error = MPI_SUCCESS;
  signal(SIGUSR1, SIG_IGN); /* Hydra sends it to tell ranks of the death of others */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  char* data = calloc((size_t)bytes, 1);
  for (int round = 0; error == MPI_SUCCESS; ++round) {
    if (rank != kVictim) {
      error = MPI_Send(data, bytes, MPI_BYTE, kVictim, 0, MPI_COMM_WORLD);
      continue;
    }
    if (round == kRounds) kill(getpid(), SIGKILL);
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != kVictim) MPI_Recv(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  printf("rank %d was told: %s\n", rank, text);
  fflush(stdout);
  _exit(3); /* MPI_Finalize would wait for everybody */
}
