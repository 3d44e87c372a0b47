/* NPB's EP: pairs of Gaussian deviates, made from uniform random numbers and counted by their size.
 *
 *   peerway cc ep.c -O3 -lm -o ep && peerway run -n 4 ./ep     (class S; -DCLASS_W, _A, _B: larger ones)
 *
 * Each batch of numbers begins at its own place in one sequence, so nodes need nothing of each other until
 * the end. The numbers follow the report RNR-94-007; the sums are checked against the values that NASA
 * publishes. */
#include <math.h>
#include <stdio.h>
#include <xmp.h>

#if defined CLASS_B
#define SIZE 30
#define SUM_X 4.033815542441498e4
#define SUM_Y -2.660669192809235e4
#elif defined CLASS_A
#define SIZE 28
#define SUM_X -4.295875165629892e3
#define SUM_Y -1.580732573678431e4
#elif defined CLASS_W
#define SIZE 25
#define SUM_X -2.863319731645753e3
#define SUM_Y -6.320053679109499e3
#else
#define SIZE 24
#define SUM_X -3.247834652034740e3
#define SUM_Y -6.958407078382297e3
#endif
#define PAIRS 1024
#define BATCHES (1 << (SIZE - 10))
#define MULTIPLIER 1220703125UL /* 5^13 */
#define MASK ((1UL << 46) - 1)

#pragma xmp nodes p(*)
#pragma xmp template all_batches(0 : BATCHES - 1)
#pragma xmp distribute all_batches(block) onto p

/* The number that comes `count` places behind x in the sequence x' = 5^13 x mod 2^46. */
static unsigned long skipped(unsigned long x, unsigned long count) {
  unsigned long power = MULTIPLIER;
  for (; count; count /= 2) {
    if (count % 2) x = power * x & MASK;
    power = power * power & MASK;
  }
  return x;
}

int main(void) {
  const double scale = 2 / 70368744177664.0; /* 2^46 */
  int counts[10] = {0}, pairs = 0;
  double sum_x = 0, sum_y = 0, start = 0;
#pragma acc data copy(counts)
  {
    start = xmp_wtime();
#pragma xmp loop(batch) on all_batches(batch) reduction(+ : sum_x, sum_y)
#pragma acc parallel loop reduction(+ : sum_x, sum_y)
    for (int batch = 0; batch < BATCHES; batch++) {
      int own[10] = {0};
      unsigned long number = skipped(271828183UL, 2UL * PAIRS * (unsigned long)batch);
      for (int i = 0; i < PAIRS; i++) {
        number = MULTIPLIER * number & MASK;
        const double x = scale * (double)number - 1;
        number = MULTIPLIER * number & MASK;
        const double y = scale * (double)number - 1, square = x * x + y * y;
        if (square <= 1) {
          const double factor = sqrt(-2 * log(square) / square);
          own[(int)fmax(fabs(x * factor), fabs(y * factor))]++;
          sum_x += x * factor;
          sum_y += y * factor;
        }
      }
      for (int level = 0; level < 10; level++) {
#pragma acc atomic
        counts[level] += own[level];
      }
    }
  }
#pragma xmp reduction(+ : counts)
  const double seconds = xmp_wtime() - start;
  const double error = fmax(fabs(sum_x / (SUM_X)-1), fabs(sum_y / (SUM_Y)-1));
#pragma xmp task on p(1)
  {
    for (int level = 0; level < 10; level++) pairs += counts[level];
    printf("pairs %d, by size", pairs);
    for (int level = 0; level < 10; level++) printf(" %d", counts[level]);
    printf("\nsums %.14e %.14e, %s\n", sum_x, sum_y, error <= 1e-8 ? "as published" : "not as published");
    fprintf(stderr, "%.3f s\n", seconds);
  }
  return error <= 1e-8 ? 0 : 1;
}
