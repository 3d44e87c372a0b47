/* Four threads of each rank at once: thread t exchanges ROUNDS messages with thread t of the other rank, tag
 * t. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 200 };
static int rank;

static void* exchange(void* number) {
  const int tag = (int)(long)number;
  for (int i = 0; i < ROUNDS; ++i) {
    int out = i, in = -1;
    MPI_Request requests[2];
    MPI_Irecv(&in, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (in != i) abort();
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("%s\n", provided == MPI_THREAD_MULTIPLE ? "multiple" : "single");
  if (provided == MPI_THREAD_MULTIPLE) {
    for (long t = 0; t < THREADS; ++t) pthread_create(&threads[t], NULL, exchange, (void*)t);
    for (long t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
  }
  MPI_Finalize();
  return 0;
}
