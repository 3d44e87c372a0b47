/* A loop that would not end for hours, in which a rank is killed by its timer. The ranks exchange a sum in
 * each iteration and, with -DREFLECT, the halo of an array. With -DCOUNTED the host knows the number of
 * iterations. */
#include <stdio.h>
#include <unistd.h>
#include <xmp.h>

#define N 64

#pragma xmp nodes nodes(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto nodes
static double x[N];
#pragma xmp align[i] with t(i)::x
#pragma xmp shadow[1] ::x

static double sum_of(void) {
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(x)
  for (int i = 0; i < N; i++) sum += x[i];
  return sum;
}

static void change(double by) {
#ifdef REFLECT
#pragma xmp reflect(x) width(/ periodic / 1 : 1) acc
#endif
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x)
  for (int i = 0; i < N; i++) x[i] = x[i] * by;
}

static long spin(void) {
  double size = 1;
  for (long n = 0; n < 1L << 60; n++) {
    size = sum_of();
#ifndef COUNTED
    if (size > 1e9) return n;
#endif
    change(size > 0 ? 1 : -1);
  }
  return -1;
}

int main(void) {
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) x[i] = 1;
#pragma acc data copy(x)
  {
    if (xmp_node_num() == 2) alarm(1);
    printf("%ld\n", spin());
  }
  return 0;
}
