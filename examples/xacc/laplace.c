/* Laplace's equation on a square by Jacobi's method: the mean of four neighbours, until the change is small.
 *
 *   peerway cc laplace.c -O2 -lm -o laplace && peerway run -n 4 -- ./laplace [steps]
 *
 * The boundary holds the harmonic function x^2 - y^2, which is its own mean of neighbours: the inner points
 * converge to it, and after enough steps the error is checked. Without directives it is a sequential program.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmp.h>

#ifndef N
#define N 64
#endif

#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[block] onto p

static double u[N][N], next[N][N];
#pragma xmp align u[i][*] with t[i]
#pragma xmp align next[i][*] with t[i]
#pragma xmp shadow u[1 : 1][0]

static double exact(int i, int j) {
  const double x = i / (double)(N - 1), y = j / (double)(N - 1);
  return x * x - y * y;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 20000;
  const double limit = 1e-13;
  double change = 1, error = 0, seconds = 0;
  int done = 0;

#pragma acc data copyout(u) create(next)
  {
#pragma xmp loop(i) on t[i]
#pragma acc parallel loop collapse(2)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) u[i][j] = i == 0 || j == 0 || i == N - 1 || j == N - 1 ? exact(i, j) : 0.0;

    const double start = xmp_wtime();
    for (done = 0; done < steps && change > limit; done++) {
#pragma xmp reflect(u) acc
      change = 0;
#pragma xmp loop(i) on t[i]
#pragma acc parallel loop collapse(2) reduction(max : change)
      for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++) {
          next[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
          change = fmax(change, fabs(next[i][j] - u[i][j]));
        }
#pragma xmp loop(i) on t[i]
#pragma acc parallel loop collapse(2)
      for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++) u[i][j] = next[i][j];
#pragma xmp reduction(max : change)
    }
    seconds = xmp_wtime() - start;
  }

#pragma xmp loop(i) on t[i] reduction(max : error)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) error = fmax(error, fabs(u[i][j] - exact(i, j)));

#pragma xmp task on p[0]
  {
    printf("%d steps, change %.3e, error %.3e\n", done, change, error);
    fprintf(stderr, "%.3f s, %.1f million points a second\n", seconds,
            1e-6 * done * (N - 2.0) * (N - 2.0) / seconds);
  }
  return change > limit || error < 1e-9 ? 0 : 1;
}
