/* Loops and reflects with nothing between them, repeated, compared with the same without directives. */
#include <stdio.h>
#include <xmp.h>
#define N 32
#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[block] onto p
static double a[N], b[N], c[N];
#pragma xmp align a[i] with t[i]
#pragma xmp align b[i] with t[i]
#pragma xmp align c[i] with t[i]
#pragma xmp shadow a[1]
#pragma xmp shadow b[1]
static void shift(double by) {
#pragma xmp loop on t[i]
#pragma acc parallel loop present(a, b)
  for (int i = 0; i < N; i++) a[i] = b[i] + by;
#pragma xmp reflect(a) width(/ periodic / 1) acc
#pragma xmp loop(i) on t[i]
#pragma acc parallel loop present(a, b)
  for (int i = 0; i < N; i++) b[i] = a[i - 1];
#pragma xmp reflect(b) width(/ periodic / 1) acc
}
int main(void) {
  int wrong = 0;
#pragma xmp loop on t[i]
  for (int i = 0; i < N; i++) b[i] = i, c[i] = 0;
#pragma acc data copy(a, b, c)
  {
    for (int n = 0; n < 6; n++) {
      shift(1);
      shift(n % 2);
#pragma xmp loop on t[i]
#pragma acc parallel loop present(b, c)
      for (int i = 0; i < N; i++) {
        c[i] += b[i] + b[i - 1];
      }
    }
  }
  double right[N], sums[N];
  for (int i = 0; i < N; i++) right[i] = i, sums[i] = 0;
  for (int n = 0; n < 6; n++) {
    for (int k = 0; k < 2; k++) {
      double next[N];
      for (int i = 0; i < N; i++) next[i] = right[(i + N - 1) % N] + (k ? n % 2 : 1);
      for (int i = 0; i < N; i++) right[i] = next[i];
    }
    for (int i = 0; i < N; i++) sums[i] += right[i] + right[(i + N - 1) % N];
  }
#pragma xmp loop on t[i] reduction(+ : wrong)
  for (int i = 0; i < N; i++) wrong += b[i] != right[i] || c[i] != sums[i];
#pragma xmp task on p[0]
  printf("%d wrong\n", wrong);
  return wrong;
}
