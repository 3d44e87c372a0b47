/* The part of both.f90 that is C. */
#include <xmp.h>
#pragma xmp nodes p[*]
#pragma xmp template t[100]
#pragma xmp distribute t[block] onto p
static double a[100];
#pragma xmp align a[i] with t[i]
double sum_of_squares(int n) {
  double sum = 0;
#pragma xmp loop(i) on t[i]
#pragma acc parallel loop
  for (int i = 0; i < n; i++) a[i] = (double)i * i;
#pragma xmp loop(i) on t[i] reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
  for (int i = 0; i < n; i++) sum += a[i];
  return sum;
}
