/* The problem of NPB's CG, after the report NAS-95-020: its classes, and the matrix of NA rows, each with
 * some NONZER^2 elements. C and C++. */
#include <math.h>
#include <stdlib.h>

#if defined CLASS_C
#define NA 150000
#define NONZER 15
#define SHIFT 110.0
#define ZETA 28.973605592845
#define ITERATIONS 75
#elif defined CLASS_B
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
#define OPERATIONS /* as NPB counts them */ \
  (2.0 * ITERATIONS * NA * (3 + NONZER * (NONZER + 1) + STEPS * (5 + NONZER * (NONZER + 1)) + 3))

#define MOST (NONZER + 1)

/* Row i has the elements begin[i] to begin[i + 1] - 1. */
static int begin[NA + 1], *column;
static double* element;

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
  column = (int*)malloc(sizeof(int) * room[NA]);
  element = (double*)malloc(sizeof(double) * room[NA]);
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
