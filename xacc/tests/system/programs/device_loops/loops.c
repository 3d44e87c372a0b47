/* Loops of the host whose scalars can live on the GPU. Prints all results with all their bits, so that the
 * same program gives the same text wherever its loops run. */
#include <math.h>
#include <stdio.h>
#include <xmp.h>

#ifndef N
#define N 24
#endif

#pragma xmp nodes nodes(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto nodes

static double x[N], r[N], p[N], q[N];
static int count[N];
#pragma xmp align[i] with t(i)::x, r, p, q, count
#pragma xmp shadow[1] ::x, r, p, q

static void report(const char* name, double first, double second) {
#pragma xmp task on nodes(1)
  printf("%s %a %a\n", name, first, second);
}

/* ---- functions with scalars, and without ---- */

static double dot(const double v[N], const double w[N]) {
#pragma xmp align[i] with t(i)::v, w
#pragma xmp shadow[1] ::v, w
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(v, w)
  for (int i = 0; i < N; i++) sum += v[i] * w[i];  // a comment
  return sum;
}

static double advance(double alpha) {
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(x, r, p, q)
  for (int i = 0; i < N; i++) {
    const double value = r[i] - alpha * q[i];
    x[i] += alpha * p[i];
    r[i] = value;
    sum += value * value;
  }
  return sum;
}

static void turn(double beta) {
#pragma xmp loop on t(i)
#pragma acc parallel loop present(p, r)
  for (int i = 0; i < N; i++) p[i] = r[i] + beta * p[i];
}

/* q = A p, with A = 4 - neighbours */
static void multiply(void) {
#pragma xmp reflect(p) width(/ periodic / 1 : 1) acc
#pragma xmp loop on t(i)
#pragma acc parallel loop present(p, q)
  for (int i = 0; i < N; i++) q[i] = 4 * p[i] - p[i - 1] - p[i + 1];
}

static double start(double shift) {
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(x, r, p)
  for (int i = 0; i < N; i++) {
    x[i] = 0;
    r[i] = p[i] = sin(i + shift);
    sum += r[i] * r[i];
  }
  return sum;
}

/* ---- the loops ---- */

/* Leaves by a return in the middle. */
static int solve(double shift, double tolerance, int most) {
  double size = start(shift);
  for (int n = 0; n < most; n++) {
    multiply();
    const double before = size;
    size = advance(size / dot(p, q));
    if (size < tolerance) return n;
    turn(size / before);
  }
  return -1;
}

/* Leaves by its condition only; the step comes out of the middle of the body. */
static int halve(double limit, double* last) {
  double size = 1;
  int n = 0;
  while (size > limit) {
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x)
    for (int i = 0; i < N; i++) x[i] = size + i;
    size = size / 2;
    n += 1;
  }
  *last = size;
  return n;
}

/* Leaves by a break; what follows the test uses the counter, so that the step must wait. */
static int climb(int most, long target) {
  long total = 0;
  int n;
  for (n = 1; n <= most; n += 2) {
    int largest = 0;
#pragma xmp loop on t(i) reduction(max : largest)
#pragma acc parallel loop reduction(max : largest) present(count)
    for (int i = 0; i < N; i++)
      if (count[i] > largest) largest = count[i];
    total += largest;
    if (total > target) break;
    const int added = n * 3 + (n > 4 ? 1 : 0);
#pragma xmp loop on t(i)
#pragma acc parallel loop present(count)
    for (int i = 0; i < N; i++) count[i] = count[i] + added - i % 2;
  }
  report("climb", n, total);
  return n;
}

/* Arithmetic with branches and a loop of its own between the loops of acc. */
static float mix(int rounds) {
  float weight = 1, kept = 0;
  unsigned seed = 7;
  for (int k = 0; k < rounds; k++) {
    double sum = 0;
    for (int j = 0; j < 3; j++) seed = seed * 1103515245u + 12345u;
    if (seed % 3 == 0)
      weight = weight * 0.5f + 0.25f;
    else {
      weight += 0.125f;
      kept = fmaxf(kept, weight);
    }
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(x)
    for (int i = 0; i < N; i++) {
      x[i] = x[i] * 0.5 + weight;
      sum += x[i];
    }
    kept = kept + (float)sqrt(fabs(sum)) - weight * 3.0f;
  }
  return kept;
}

/* The value that ends the loop is no number: no comparison with it is true. */
static int until_nan(int most) {
  double size = 1;
  for (int n = 0; n < most; n++) {
    size = size * 0 / (n < 3 ? 1 : 0);
    turn(size);
    if (!(size < 1)) return n;
  }
  return -1;
}

/* Leaves before a reflect: then the halos are out of date. */
static int damp(double wanted) {
  for (int n = 0; n < 9; n++) {
    double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(p)
    for (int i = 0; i < N; i++) {
      p[i] *= 0.5;
      sum += p[i];
    }
    if (fabs(sum) < wanted) return n;
    multiply();
  }
  return -1;
}

/* Has a reflect after its test, of an array that it does not write. */
static int drift(int most) {
  for (int n = 0; n < most; n++) {
    double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(q)
    for (int i = 0; i < N; i++) sum += q[i];
    if (sum > 1e9) return n;
#pragma xmp reflect(p) width(/ periodic / 1 : 1) acc
#pragma xmp loop on t(i)
#pragma acc parallel loop present(p, q)
    for (int i = 0; i < N; i++) q[i] = q[i] * 0.5 + p[i - 1] + p[i + 1];
  }
  return -1;
}

/* Copies an array to the GPU in each iteration, unless it is there. */
static double weights[N];
#pragma xmp align weights[i] with t(i)
static int weigh(int most) {
  for (int n = 0; n < most; n++) {
    double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(q)
    for (int i = 0; i < N; i++) sum += q[i];
    if (sum > 1e9) return n;
#pragma xmp loop on t(i)
#pragma acc parallel loop present(q) copyin(weights)
    for (int i = 0; i < N; i++) q[i] = q[i] * 0.5 + weights[i];
  }
  return -1;
}

/* Each node needs the whole vector. */
static double all[N];
static void multiply_densely(void) {
#pragma xmp gmove acc
  all[:] = p[:];
#pragma xmp loop on t(i)
#pragma acc parallel loop present(q, all)
  for (int i = 0; i < N; i++) {
    double sum = N * all[i];
    for (int j = 0; j < N; j++) sum += all[j] / (1 + i + j);
    q[i] = sum;
  }
}

static double solve_densely(double shift, int most) {
  double size = start(shift);
  for (int n = 0; n < most; n++) {
    multiply_densely();
    const double before = size;
    size = advance(size / dot(p, q));
    turn(size / before);
  }
  return size;
}

int main(void) {
#pragma acc enter data create(x, r, p, q, count, all)
  for (int again = 0; again < 3; again++) report("solve", solve(again, 1e-20, 100), dot(x, x));
  report("solve at once", solve(0, 1e30, 100), dot(x, x));
  report("solve never", solve(1, 0, 5), dot(x, x));
  report("solve none", solve(1, 0, 0), dot(x, x));
  double last = 0;
  report("halve", halve(1e-3, &last), last);
  report("halve not", halve(2, &last), last);
  report("x", dot(x, x), 0);
#pragma xmp loop on t(i)
#pragma acc parallel loop present(count)
  for (int i = 0; i < N; i++) count[i] = i;
  report("climb", climb(40, 500), climb(3, 100000));
  report("mix", mix(9), mix(1));
  report("mix", dot(x, x), 0);
  for (int again = 0; again < 3; again++) {
    start(again);
    report("damp", damp(0.05), 0);
    multiply();
    report("neighbours", dot(q, q), 0);
  }
  for (int most = 9; most > 0; most = most * 2 % 11) {  // 9, 7, 3, 6, 1, 2, 4, 8, 5, 10, then 9 again
    start(most);
    report("drift", drift(most), dot(q, q));
    if (most == 10) break;
  }
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) weights[i] = 0.1 * i;
#pragma acc data copyin(weights)
  report("weigh", weigh(9), dot(q, q));
  report("weigh", weigh(7), dot(q, q));
  report("weigh", weigh(1), dot(q, q));
  report("nan", until_nan(20), until_nan(2));
  for (int again = 0; again < 3; again++) report("dense", solve_densely(again, 4 + again), dot(x, x));
  return 0;
}
