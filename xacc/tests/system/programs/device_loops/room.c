/* Four reflects of 2 MiB, which share a plan. A kernel overlaps the first and the third; the kernels behind
 * the others write what is reflected. The first and the second are launched before the kernels behind them
 * are known; the others are recorded with them, and become part of a graph. */
#include <xmp.h>

#define ROUNDS 4
#define COLUMNS (1 << 18)
static double a[2][COLUMNS], b[2][COLUMNS];
#pragma xmp nodes nodes(2)
#pragma xmp template t(0 : 1)
#pragma xmp distribute t(block) onto nodes
#pragma xmp align[i][*] with t(i)::a, b
#pragma xmp shadow[1][0] ::a, b

int main(void) {
  int round = 0, part = 0;
#pragma acc enter data create(a, b)
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(a, b)
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = i + 1, b[i][j] = 0;
  while (round < ROUNDS) {
    round++; /* what stands between directives ends a sequence of launches */
#pragma xmp reflect(a) acc
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(a, b)
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < COLUMNS; j++) b[i][j] += i > 0 ? a[i - 1][j] : a[i + 1][j];
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(a)
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < COLUMNS; j++) a[i][j] += 1;
    part++;
#pragma xmp reflect(a) acc
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(a)
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < COLUMNS; j++) a[i][j] += i > 0 ? a[i - 1][j] : 1;
#pragma xmp reflect(a) acc
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(a, b)
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < COLUMNS; j++) b[i][j] += i > 0 ? a[i - 1][j] : a[i + 1][j];
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(a)
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < COLUMNS; j++) a[i][j] += 1;
#pragma xmp reflect(a) acc
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(a)
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < COLUMNS; j++) a[i][j] += 1;
  }
  return part - ROUNDS;
}
