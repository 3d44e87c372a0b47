/* A loop on the GPU whose last part is a reflect of an array of which one node has no element. That node has
 * nothing to transfer, but must know like the others that the halos are old behind the loop. */
#include <stdio.h>
#include <xmp.h>

#define N 8
#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp template u(0 : 11)
static int parts[3] = {4, 4, 0};
#pragma xmp distribute t(gblock(parts)) onto p
#pragma xmp distribute u(block) onto p
static double x[N], y[N], z[12];
#pragma xmp align[i] with t(i)::x, y
#pragma xmp align[i] with u(i)::z
#pragma xmp shadow[1] ::x, y, z

static double total(void) {
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(x)
  for (int i = 0; i < N; i++) sum += x[i];
  return sum;
}

static void spread(void) {
#pragma xmp reflect(x) acc
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x, y)
  for (int i = 1; i < N - 1; i++) y[i] = (x[i - 1] + x[i + 1]) / 4;
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x, y)
  for (int i = 0; i < N; i++) x[i] = x[i] + y[i];
#pragma xmp reflect(x) acc
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x, y)
  for (int i = 1; i < N - 1; i++) y[i] = x[i - 1] + x[i + 1];
}

static long grow(void) {
  for (long n = 0; n < 10; n++) {
    if (total() > 1e9) return n;
    spread();
  }
  return -1;
}

static void shift(double by) {
#pragma xmp reflect(x, y) acc
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x, y)
  for (int i = 1; i < N - 1; i++) y[i] = x[i + 1] + by;
}

int main(void) {
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) x[i] = 1, y[i] = 0;
#pragma xmp loop on u(i)
  for (int i = 0; i < 12; i++) z[i] = i;
#pragma acc data copy(x, y, z)
  {
    for (int k = 0; k < 4; k++) {
      const long last = grow();
      shift(k);
      if (k % 2 != 0) {
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x)
        for (int i = 0; i < N; i++) x[i] = x[i] / 2;
        shift(k);
      }
      const double sum = total();
#pragma xmp task on p(1)
      printf("%ld %.17g\n", last, sum);
    }
#pragma xmp reflect(z) acc
#pragma xmp loop on u(i)
#pragma acc parallel loop present(z)
    for (int i = 1; i < 11; i++) z[i] = z[i] + 1;
  }
  return 0;
}
