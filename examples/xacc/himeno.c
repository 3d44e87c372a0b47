/* The kernel of the Himeno benchmark: Jacobi's method for the pressure of an incompressible fluid, 34 flops a
 * point.
 *
 *   peerway cc himeno.c -O3 -lm -o himeno && peerway run -n 2 ./himeno
 *
 * The residual ("gosa") does not depend on how the grid is spread. Sizes: -DMI=129 -DMJ=129 -DMK=257 is size
 * M. */
#include <stdio.h>
#include <xmp.h>

#ifndef MI
#define MI 33
#define MJ 33
#define MK 65
#endif
#ifndef STEPS
#define STEPS 30
#endif

#pragma xmp nodes n(*)
#pragma xmp template t(0 : MI - 1)
#pragma xmp distribute t(block) onto n

static float p[MI][MJ][MK], next[MI][MJ][MK], bound[MI][MJ][MK], source[MI][MJ][MK];
static float a[4][MI][MJ][MK], b[3][MI][MJ][MK], c[3][MI][MJ][MK];
#pragma xmp align[i][*][*] with t(i)::p, next, bound, source
#pragma xmp align[*][i][*][*] with t(i)::a, b, c
#pragma xmp shadow p[1][0][0]

static void start(void) {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(3)
  for (int i = 0; i < MI; i++)
    for (int j = 0; j < MJ; j++)
      for (int k = 0; k < MK; k++) {
        for (int m = 0; m < 3; m++) a[m][i][j][k] = 1, b[m][i][j][k] = 0, c[m][i][j][k] = 1;
        a[3][i][j][k] = 1.0f / 6;
        p[i][j][k] = (float)(i * i) / ((MI - 1) * (MI - 1));
        source[i][j][k] = 0;
        bound[i][j][k] = 1;
      }
}

static double jacobi(void) {
  const float omega = 0.8f;
  double gosa = 0;
#pragma xmp reflect(p) width(1, 0, 0) acc
#pragma xmp loop(i) on t(i) reduction(+ : gosa)
#pragma acc parallel loop collapse(3) reduction(+ : gosa)
  for (int i = 1; i < MI - 1; i++)
    for (int j = 1; j < MJ - 1; j++)
      for (int k = 1; k < MK - 1; k++) {
        const float all =
            a[0][i][j][k] * p[i + 1][j][k] + a[1][i][j][k] * p[i][j + 1][k] + a[2][i][j][k] * p[i][j][k + 1] +
            b[0][i][j][k] *
                (p[i + 1][j + 1][k] - p[i + 1][j - 1][k] - p[i - 1][j + 1][k] + p[i - 1][j - 1][k]) +
            b[1][i][j][k] *
                (p[i][j + 1][k + 1] - p[i][j - 1][k + 1] - p[i][j + 1][k - 1] + p[i][j - 1][k - 1]) +
            b[2][i][j][k] *
                (p[i + 1][j][k + 1] - p[i - 1][j][k + 1] - p[i + 1][j][k - 1] + p[i - 1][j][k - 1]) +
            c[0][i][j][k] * p[i - 1][j][k] + c[1][i][j][k] * p[i][j - 1][k] + c[2][i][j][k] * p[i][j][k - 1] +
            source[i][j][k];
        const float change = (all * a[3][i][j][k] - p[i][j][k]) * bound[i][j][k];
        gosa += change * change;
        next[i][j][k] = p[i][j][k] + omega * change;
      }
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(3)
  for (int i = 1; i < MI - 1; i++)
    for (int j = 1; j < MJ - 1; j++)
      for (int k = 1; k < MK - 1; k++) p[i][j][k] = next[i][j][k];
  return gosa;
}

int main(void) {
  double first = 0, gosa = 0, seconds = 0;
#pragma acc data create(p, next, bound, source, a, b, c)
  {
    start();
    gosa = first = jacobi();
    const double begin = xmp_wtime();
    for (int step = 1; step < STEPS; step++) gosa = jacobi();
    seconds = xmp_wtime() - begin;
  }
#pragma xmp task on n(1)
  {
    printf("gosa %.6e after %d steps\n", gosa, STEPS);
    fprintf(stderr, "%.1f MFLOPS\n", 34e-6 * (MI - 2.0) * (MJ - 2.0) * (MK - 2.0) * (STEPS - 1) / seconds);
  }
  return gosa < first ? 0 : 1;
}
