/* Calls of MPI in known numbers, for the trace of them. Each line says what the rank did. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void late_sender(void) {
  char byte[1000];
  memset(byte, 1, sizeof byte);
  if (rank == 0) {
    usleep(100000);
    MPI_Send(byte, 1000, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Recv(byte, 1000, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void ring(int rounds) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  double out[4] = {0}, in[4];
  for (int i = 0; i < rounds; ++i) {
    MPI_Request requests[2];
    MPI_Irecv(in, 4, MPI_DOUBLE, previous, i, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 4, MPI_DOUBLE, next, i, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

static void persistent(int rounds) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int out = rank, in = -1;
  MPI_Request requests[2];
  MPI_Recv_init(&in, 1, MPI_INT, previous, 99, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(&out, 1, MPI_INT, next, 99, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < rounds; ++i) {
    MPI_Startall(2, requests);
    for (int flag = 0; !flag;) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (in != previous) abort();
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void communicators(void) {
  MPI_Comm half, copy;
  int own, sum = 0, unit = 1;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* in the reverse order */
  MPI_Comm_rank(half, &own);
  MPI_Comm_dup(half, &copy);
  int members;
  MPI_Comm_size(half, &members);
  if (members > 1) {
    if (own == 0) MPI_Send(&unit, 1, MPI_INT, 1, 5, copy);
    if (own == 1) MPI_Recv(&sum, 1, MPI_INT, 0, 5, copy, MPI_STATUS_IGNORE);
  }
  MPI_Allreduce(&unit, &sum, 1, MPI_INT, MPI_SUM, half);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
}

static void windows(void) {
  double* base;
  double value = 1;
  MPI_Win win;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  MPI_Get(&value, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  late_sender();
  ring(10);
  persistent(5);
  communicators();
  if (rank == size - 1) usleep(50000);
  MPI_Barrier(MPI_COMM_WORLD); /* all but the last wait for it */
  windows();
  int out = rank, in = -1;
  MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 3, &in, 1, MPI_INT, (rank + size - 1) % size, 3,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
  MPI_Finalize();
  return in == (rank + size - 1) % size ? 0 : 1;
}
