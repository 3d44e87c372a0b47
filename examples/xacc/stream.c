/* STREAM's four loops on arrays that are spread over nodes: copy, scale, add, triad.
 *
 *   peerway cc stream.c -O3 -lm -o stream && peerway run -n 2 ./stream
 *
 * Bandwidths go to standard error; standard output says whether the values are right. */
#include <math.h>
#include <stdio.h>
#include <xmp.h>

#ifndef N
#define N 10000000
#endif
#define TIMES 10

#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[block] onto p

static double a[N], b[N], c[N];
#pragma xmp align[i] with t[i] ::a, b, c

static void show(const char* name, int arrays, double seconds) {
#pragma xmp task on p[0]
  fprintf(stderr, "%-6s %9.1f MB/s\n", name, 1e-6 * arrays * sizeof(double) * N / seconds);
}

int main(void) {
  const double scalar = 3;
  double best[4] = {1e9, 1e9, 1e9, 1e9}, wrong = 0;

#pragma acc data copyout(a, b, c)
  {
#pragma xmp loop on t[i]
#pragma acc parallel loop
    for (int i = 0; i < N; i++) a[i] = 1, b[i] = 2, c[i] = 0;

    for (int k = 0; k < TIMES; k++) {
      double at[5];
#pragma xmp barrier
      at[0] = xmp_wtime();
#pragma xmp loop on t[i]
#pragma acc parallel loop
      for (int i = 0; i < N; i++) c[i] = a[i];
#pragma xmp barrier
      at[1] = xmp_wtime();
#pragma xmp loop on t[i]
#pragma acc parallel loop
      for (int i = 0; i < N; i++) b[i] = scalar * c[i];
#pragma xmp barrier
      at[2] = xmp_wtime();
#pragma xmp loop on t[i]
#pragma acc parallel loop
      for (int i = 0; i < N; i++) c[i] = a[i] + b[i];
#pragma xmp barrier
      at[3] = xmp_wtime();
#pragma xmp loop on t[i]
#pragma acc parallel loop
      for (int i = 0; i < N; i++) a[i] = b[i] + scalar * c[i];
#pragma xmp barrier
      at[4] = xmp_wtime();
      for (int n = 0; n < 4; n++) best[n] = fmin(best[n], at[n + 1] - at[n]);
    }
  }

  double expected_a = 1, expected_b = 2, expected_c = 0;
  for (int k = 0; k < TIMES; k++)
    expected_c = expected_a, expected_b = scalar * expected_c, expected_c = expected_a + expected_b,
    expected_a = expected_b + scalar * expected_c;
#pragma xmp loop on t[i] reduction(max : wrong)
  for (int i = 0; i < N; i++)
    wrong =
        fmax(wrong, fabs(a[i] / expected_a - 1) + fabs(b[i] / expected_b - 1) + fabs(c[i] / expected_c - 1));

  show("copy", 2, best[0]);
  show("scale", 2, best[1]);
  show("add", 3, best[2]);
  show("triad", 3, best[3]);
#pragma xmp task on p[0]
  puts(wrong < 1e-13 ? "all values are right" : "some values are wrong");
  return wrong < 1e-13 ? 0 : 1;
}
