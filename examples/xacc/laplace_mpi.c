/* laplace.c written by hand: MPI between blocks of rows, OpenMP inside. The directives are compared with it.
 *
 *   mpicc -fopenmp laplace_mpi.c -O3 -lm -o laplace_mpi && mpirun -n 2 ./laplace_mpi [steps] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef N
#define N 64
#endif

static double exact(int i, int j) {
  const double x = i / (double)(N - 1), y = j / (double)(N - 1);
  return x * x - y * y;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 20000;
  const double limit = 1e-13;
  double change = 1, error = 0;
  int rank, size, done;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int block = (N + size - 1) / size, start = rank * block;
  const int rows = start + block < N ? block : N > start ? N - start : 0;
  double (*u)[N] = malloc(sizeof(double[N]) * (block + 2));
  double (*next)[N] = malloc(sizeof(double[N]) * (block + 2));
  const int below = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int above = start + rows < N ? rank + 1 : MPI_PROC_NULL;
  const int first = start == 0 ? 2 : 1, last = start + rows == N ? rows - 1 : rows;

#pragma omp parallel for
  for (int i = 0; i < rows + 2; i++)
    for (int j = 0; j < N; j++) {
      const int g = start + i - 1;
      u[i][j] = g == 0 || j == 0 || g == N - 1 || j == N - 1 ? exact(g, j) : 0.0;
    }
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (done = 0; done < steps && change > limit; done++) {
    MPI_Request requests[4];
    MPI_Irecv(u[0], N, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(u[rows + 1], N, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(u[rows], N, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(u[1], N, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    change = 0;
#pragma omp parallel for reduction(max : change)
    for (int i = first; i <= last; i++)
#pragma omp simd reduction(max : change)
      for (int j = 1; j < N - 1; j++) {
        next[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
        change = fmax(change, fabs(next[i][j] - u[i][j]));
      }
#pragma omp parallel for
    for (int i = first; i <= last; i++)
#pragma omp simd
      for (int j = 1; j < N - 1; j++) u[i][j] = next[i][j];
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  const double seconds = MPI_Wtime() - begin;
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < N; j++) error = fmax(error, fabs(u[i][j] - exact(start + i - 1, j)));
  MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d steps, change %.3e, error %.3e\n", done, change, error);
    fprintf(stderr, "%.3f s, %.1f million points a second\n", seconds,
            1e-6 * done * (N - 2.0) * (N - 2.0) / seconds);
  }
  MPI_Finalize();
  return change > limit || error < 1e-9 ? 0 : 1;
}
