/* Loops without a kernel between loops with one: the host executes them with the GPU's data. */
#include <math.h>
#include <stdio.h>
#include <xmp.h>

#define N 24

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p
static double a[N];
#pragma xmp align a[i] with t(i)

static double weight = 1;
#pragma acc declare create(weight)
static double weighted(double v) { return weight * v; }

int main(void) {
  double table[8] = {0};
  long double exact = 0;
  int wrong = 0;
#pragma acc data create(a) copy(table)
  {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop
    for (int i = 0; i < N; i++) a[i] = i;
#pragma acc parallel loop present(table)
    for (int k = 0; k < 8; k++) table[k] = k;
#pragma acc parallel present(weight)
    weight = 3; /* only on the GPU */
#pragma xmp loop(i) on t(i) reduction(+ : exact)
#pragma acc parallel loop reduction(+ : exact) present(a, table) async(1)
    for (int i = 0; i < N; i++) {
      a[i] = weighted(a[i]) + table[i % 8];
      exact += a[i];
    }
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop
    for (int i = 0; i < N; i++) a[i] += 1; /* sees what the host computed */
#pragma acc update self(a)
  }
  static int large[1000]; /* too large to be an argument */
  int sums[N];
  large[999] = 3;
#pragma acc parallel loop firstprivate(large) copyout(sums)
  for (int i = 0; i < N; i++) {
    large[i] = i;
    sums[i] = large[i] + large[999];
  }
  for (int i = 0; i < N; i++) wrong += sums[i] != i + 3 || large[i] != 0;
#pragma xmp loop(i) on t(i) reduction(+ : wrong)
  for (int i = 0; i < N; i++) wrong += a[i] != 3 * i + i % 8 + 1;
  wrong += exact != 3 * N * (N - 1) / 2 + N / 8 * 28;
  long totals[4] = {1, 1, 1, 1}, counts[2] = {0};
  _Bool some = 0;
#pragma acc parallel loop reduction(+ : totals[1 : 3], counts) copyin(sums) /* arrays */
  for (int i = 0; i < N; i++) {
    totals[1 + i % 3] += sums[i];
    counts[i % 2]++;
  }
#pragma acc parallel loop reduction(+ : some)
  for (int i = 0; i < N; i++) some += i > 3;
  wrong += totals[0] != 1 || totals[1] + totals[2] + totals[3] != 3 + N * (N - 1) / 2 + 3 * N;
  wrong += counts[0] != N / 2 || counts[1] != N / 2 || (int)some != 1;
  if (xmp_node_num() == 1) printf("%d wrong\n", wrong);
  return wrong != 0;
}
