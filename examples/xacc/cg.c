/* NPB's CG: the smallest eigenvalue of a sparse random matrix by inverse iteration with conjugate gradients.
 *
 *   peerway cc cg.c -O3 -lm -o cg && peerway run -n 4 ./cg       (class S; larger: -DCLASS_W, _A, _B, _C)
 *
 * Rows and vectors are spread; the vector that a product needs is brought whole to each node by gmove. The
 * matrix is in cg_problem.h; zeta is checked against the value that NASA publishes. As in NPB, one iteration
 * comes before the timed ones. */
#include <math.h>
#include <stdio.h>
#include <xmp.h>

#include "cg_problem.h"

#pragma xmp nodes n(*)
#pragma xmp template t(0 : NA - 1)
#pragma xmp distribute t(block) onto n

static double x[NA], z[NA], p[NA], q[NA], r[NA];
#pragma xmp align[i] with t(i)::x, z, p, q, r

static double whole[NA];

static double dot(const double v[NA], const double w[NA]) {
#pragma xmp align[i] with t(i)::v, w
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
  for (int i = 0; i < NA; i++) sum += v[i] * w[i];
  return sum;
}

/* q = A p; gives <p, q> */
static double multiply(void) {
  double product = 0;
#ifdef _XCALABLEMP
#pragma xmp gmove acc
  whole [0:NA] = p [0:NA];
#else
#pragma acc parallel loop
  for (int i = 0; i < NA; i++) whole[i] = p[i];
#endif
#pragma xmp loop on t(i) reduction(+ : product)
#pragma acc parallel loop vector_length(32) reduction(+ : product)
  for (int i = 0; i < NA; i++) {
    double sum = 0;
#pragma acc loop vector reduction(+ : sum)
    for (int e = begin[i]; e < begin[i + 1]; e++) sum += element[e] * whole[column[e]];
    q[i] = sum;
    product += sum * p[i];
  }
  return product;
}

/* z += alpha p; r -= alpha q; gives |r|^2 */
static double advance(double alpha) {
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
  for (int i = 0; i < NA; i++) {
    const double value = r[i] - alpha * q[i];
    z[i] += alpha * p[i];
    r[i] = value;
    sum += value * value;
  }
  return sum;
}

/* z: an approximation of A^-1 x */
static void solve(void) {
#pragma xmp loop on t(i)
#pragma acc parallel loop
  for (int i = 0; i < NA; i++) z[i] = 0, r[i] = p[i] = x[i];
  double rho = dot(r, r);
  for (int step = 0; step < STEPS; step++) {
    const double before = rho;
    rho = advance(rho / multiply());
    const double beta = rho / before;
#pragma xmp loop on t(i)
#pragma acc parallel loop
    for (int i = 0; i < NA; i++) p[i] = r[i] + beta * p[i];
  }
}

/* Returns zeta after some iterations from x = 1. */
static double iterated(int iterations) {
  double zeta = 0;
#pragma xmp loop on t(i)
#pragma acc parallel loop
  for (int i = 0; i < NA; i++) x[i] = 1;
  for (int k = 0; k < iterations; k++) {
    solve();
    zeta = SHIFT + 1 / dot(x, z);
    const double scale = 1 / sqrt(dot(z, z));
#pragma xmp loop on t(i)
#pragma acc parallel loop
    for (int i = 0; i < NA; i++) x[i] = scale * z[i];
  }
  return zeta;
}

int main(void) {
  double zeta = 0, start = 0;
  make_matrix();
#pragma acc data copyin(begin, column[0 : begin[NA]], element[0 : begin[NA]]) create(x, z, p, q, r, whole)
  {
    iterated(1);
    start = xmp_wtime();
    zeta = iterated(ITERATIONS);
  }
  const double seconds = xmp_wtime() - start, error = fabs(zeta - ZETA) / ZETA;
#pragma xmp task on n(1)
  {
    printf("zeta %.10f, %s\n", zeta, error < 1e-10 ? "as published" : "not as published");
    fprintf(stderr, "%.3f s, %.1f Mop/s\n", seconds, OPERATIONS / seconds / 1e6);
  }
  return error < 1e-10 ? 0 : 1;
}
