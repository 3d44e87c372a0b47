/* The same for the copies on a GPU. */
#include <stdio.h>
#include <xmp.h>

#include "spoil.h"

#define N 16
#pragma xmp nodes p(NODES)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p

static double a[N];
#pragma xmp align a[i] with t(i)
#pragma xmp shadow a[1 : 1]

static int wrong, last;

static void fill(double add) {
#pragma xmp loop on t(i)
#pragma acc parallel loop present(a)
  for (int i = 0; i < N; i++) a[i] = i + add;
}

static void expect(int line, double wanted) {
  if (last == N - 1) return;
  const double actual = on_device(&a[last + 1]);
  if (actual == wanted) return;
  wrong++;
  fprintf(stderr, "acc.c:%d: %g, not %g\n", line, actual, wanted);
}

static void spoil_a(void) {
  if (last < N - 1) spoil(&a[last + 1]);
}

#define EXPECT(value) expect(__LINE__, value)
#define NEXT (last + 1)

int main(void) {
  last = (N + xmp_num_nodes() - 1) / xmp_num_nodes() * xmp_node_num() - 1;
#pragma acc enter data create(a)
  fill(0);
#pragma xmp reflect(a) acc
  EXPECT(NEXT);
  spoil_a();
#pragma xmp reflect(a) acc
  EXPECT(-1); /* free */
  fill(1);
#pragma xmp reflect(a) acc
  EXPECT(NEXT + 1);
  spoil_a();
#pragma acc update host(a)
#pragma xmp reflect(a) acc
  EXPECT(NEXT + 1); /* the host's memory has changed: both are reflected again */
#ifdef GPU
  spoil_a();
#pragma acc exit data delete(a)
#pragma acc enter data copyin(a)
#pragma xmp reflect(a) acc
  EXPECT(NEXT + 1); /* another copy */
#endif
#pragma acc update host(a)
  spoil_a();
#pragma xmp reflect(a)
  if (last < N - 1 && a[NEXT] != NEXT + 1) wrong++;
#pragma xmp gmove acc
  a [0:N] = 5;
#pragma xmp reflect(a) acc
  EXPECT(5);
#pragma acc exit data delete(a)
#pragma xmp reduction(+ : wrong)
  if (xmp_node_num() == 1) printf("%d wrong\n", wrong);
  return wrong != 0;
}
