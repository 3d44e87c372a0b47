/* NPB's CG: the smallest eigenvalue of a sparse random matrix by inverse iteration with conjugate gradients.
 *
 *   peerway cc cg.c -O3 -lm -o cg && peerway run -n 4 ./cg       (class S; -DCLASS_W, _A, _B: larger ones)
 *
 * Rows and vectors are spread; the vector that a product needs is brought whole to each node by gmove. The
 * matrix follows the report NAS-95-020; zeta is checked against the value that NASA publishes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmp.h>

#if defined CLASS_B
#define NA 75000
#define NONZER 13
#define SHIFT 60.0
#define ZETA 22.712745482631
#define ITERATIONS 75
#elif defined CLASS_A
#define NA 14000
#define NONZER 11
#define SHIFT 20.0
#define ZETA 17.130235054029
#elif defined CLASS_W
#define NA 7000
#define NONZER 8
#define SHIFT 12.0
#define ZETA 10.362595087124
#else
#define NA 1400
#define NONZER 7
#define SHIFT 10.0
#define ZETA 8.5971775078648
#endif
#ifndef ITERATIONS
#define ITERATIONS 15
#endif
#define STEPS 25
#define MOST (NONZER + 1)

#pragma xmp nodes n(*)
#pragma xmp template t(0 : NA - 1)
#pragma xmp distribute t(block) onto n

static double x[NA], z[NA], p[NA], q[NA], r[NA];
#pragma xmp align[i] with t(i)::x, z, p, q, r

static int begin[NA + 1], *column;
static double *element, whole[NA];

/* ---- the matrix, the same on each node ---- */

static double seed = 314159265.0;

/* Returns the next number of x' = 5^13 x mod 2^46, divided by 2^46. */
static double random_number(void) {
  const unsigned long long mask = (1ULL << 46) - 1;
  seed = (double)(((unsigned long long)seed * 1220703125ULL) & mask);
  return seed / (double)(1ULL << 46);
}

/* Row `row` of the factor: NONZER random elements, and 0.5 on the diagonal. */
static int sparse_row(int row, int* at, double* value) {
  int count = 0, power = 1;
  while (power < NA) power *= 2;
  while (count < NONZER) {
    const double v = random_number();
    const int i = (int)(power * random_number());
    int seen = i >= NA;
    for (int k = 0; k < count; k++) seen |= at[k] == i;
    if (!seen) at[count] = i, value[count++] = v;
  }
  for (int k = 0; k < count; k++)
    if (at[k] == row) {
      value[k] = 0.5;
      return count;
    }
  at[count] = row, value[count] = 0.5;
  return count + 1;
}

static void make_matrix(void) {
  static int at[NA][MOST], count[NA], room[NA + 1], used[NA];
  static double value[NA][MOST];
  random_number();
  for (int i = 0; i < NA; i++) count[i] = sparse_row(i, at[i], value[i]);
  for (int i = 0; i < NA; i++)
    for (int k = 0; k < count[i]; k++) room[at[i][k] + 1] += count[i];
  for (int i = 0; i < NA; i++) room[i + 1] += room[i];
  column = malloc(sizeof(int) * room[NA]);
  element = malloc(sizeof(double) * room[NA]);
  double size = 1;
  const double ratio = pow(0.1, 1.0 / NA);
  for (int i = 0; i < NA; i++, size *= ratio)
    for (int k = 0; k < count[i]; k++) {
      const int j = at[i][k];
      for (int m = 0; m < count[i]; m++) {
        double v = value[i][m] * (size * value[i][k]);
        if (at[i][m] == j && j == i) v += 0.1 - SHIFT;
        int e = room[j];
        while (e < room[j] + used[j] && column[e] != at[i][m]) e++;
        if (e == room[j] + used[j]) column[e] = at[i][m], element[e] = 0, used[j]++;
        element[e] += v;
      }
    }
  for (int i = 0; i < NA; i++) { /* close the gaps */
    for (int e = 0; e < used[i]; e++) {
      column[begin[i] + e] = column[room[i] + e];
      element[begin[i] + e] = element[room[i] + e];
    }
    begin[i + 1] = begin[i] + used[i];
  }
}

/* ---- the solver ---- */

static double dot(const double v[NA], const double w[NA]) {
#pragma xmp align[i] with t(i)::v, w
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
  for (int i = 0; i < NA; i++) sum += v[i] * w[i];
  return sum;
}

/* q = A p */
static void multiply(void) {
#pragma acc update host(p)
#ifdef _XCALABLEMP
#pragma xmp gmove
  whole [0:NA] = p [0:NA];
#else
  for (int i = 0; i < NA; i++) whole[i] = p[i];
#endif
#pragma acc update device(whole)
#pragma xmp loop on t(i)
#pragma acc parallel loop
  for (int i = 0; i < NA; i++) {
    double sum = 0;
    for (int e = begin[i]; e < begin[i + 1]; e++) sum += element[e] * whole[column[e]];
    q[i] = sum;
  }
}

/* z: an approximation of A^-1 x */
static void solve(void) {
#pragma xmp loop on t(i)
#pragma acc parallel loop
  for (int i = 0; i < NA; i++) z[i] = 0, r[i] = p[i] = x[i];
  double rho = dot(r, r);
  for (int step = 0; step < STEPS; step++) {
    multiply();
    const double alpha = rho / dot(p, q), before = rho;
#pragma xmp loop on t(i)
#pragma acc parallel loop
    for (int i = 0; i < NA; i++) z[i] += alpha * p[i], r[i] -= alpha * q[i];
    rho = dot(r, r);
    const double beta = rho / before;
#pragma xmp loop on t(i)
#pragma acc parallel loop
    for (int i = 0; i < NA; i++) p[i] = r[i] + beta * p[i];
  }
}

int main(void) {
  double zeta = 0, start = 0;
  make_matrix();
#pragma acc data copyin(begin, column[0 : begin[NA]], element[0 : begin[NA]]) create(x, z, p, q, r, whole)
  {
#pragma xmp loop on t(i)
#pragma acc parallel loop
    for (int i = 0; i < NA; i++) x[i] = 1;
    start = xmp_wtime();
    for (int k = 0; k < ITERATIONS; k++) {
      solve();
      zeta = SHIFT + 1 / dot(x, z);
      const double scale = 1 / sqrt(dot(z, z));
#pragma xmp loop on t(i)
#pragma acc parallel loop
      for (int i = 0; i < NA; i++) x[i] = scale * z[i];
    }
  }
  const double seconds = xmp_wtime() - start, error = fabs(zeta - ZETA) / ZETA;
#pragma xmp task on n(1)
  {
    printf("zeta %.10f, %s\n", zeta, error < 1e-10 ? "as published" : "not as published");
    fprintf(stderr, "%.3f s\n", seconds);
  }
  return error < 1e-10 ? 0 : 1;
}
