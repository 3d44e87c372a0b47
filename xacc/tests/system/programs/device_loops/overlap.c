/* Kernels after a reflect, which may run beside it: stencils over one and two distributed dimensions, of
 * several widths, forwards and backwards, and kernels that must wait, because they write what is reflected,
 * or reach it by another name. */
#include <stdio.h>
#include <xmp.h>

#ifndef ROWS
#define ROWS 14
#define COLUMNS 10
#endif
#ifndef NODES
#define NODES 2, 1
#endif

#pragma xmp nodes nodes(NODES)
#pragma xmp template t(0 : COLUMNS - 1, 0 : ROWS - 1)
#pragma xmp distribute t(block, block) onto nodes

/* Integers below MOST: the same on every machine and in every order. */
#define MOST 10007
static long a[ROWS][COLUMNS], b[ROWS][COLUMNS], c[ROWS][COLUMNS];
#pragma xmp align[i][j] with t(j, i)::a, b, c
#pragma xmp shadow[2][2] ::a, b, c

/* b = a and its neighbours at a distance of two */
static void wide(void) {
#pragma xmp reflect(a) width(/ periodic / 2 : 2, / periodic / 2 : 2) acc
#pragma xmp loop(i, j) on t(j, i)
#pragma acc parallel loop collapse(2) present(a, b)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++)
      b[i][j] = (a[i][j] + 3 * a[i - 2][j] + 5 * a[i + 2][j] + 7 * a[i][j - 2] + 11 * a[i][j + 2]) % MOST;
}

/* a = b's diagonal neighbours, from the last row to the first; a corner comes from a third node */
static void corners(long shift) {
#pragma xmp reflect(b) width(/ periodic / 1 : 1, / periodic / 1 : 1) acc
#pragma xmp loop(i, j) on t(j, i)
#pragma acc parallel loop collapse(2) present(a, b)
  for (int i = ROWS - 1; i >= 0; i--)
    for (int j = 0; j < COLUMNS; j++) {
      const int above = i - 1, below = i + 1;
      a[i][j] =
          (b[above][j - 1] + 3 * b[above][j + 1] + 5 * b[below][j - 1] + 7 * b[below][j + 1] + shift) % MOST;
    }
}

/* Writes what the reflect sends; then reads halos of it only above. */
static void in_place(void) {
#pragma xmp reflect(a) width(/ periodic / 1 : 1, 0) acc
#pragma xmp loop(i, j) on t(j, i)
#pragma acc parallel loop collapse(2) present(a, c)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) {
      c[i][j] = a[i][j];
      a[i][j] = (3 * a[i][j] + i) % MOST;
    }
#pragma xmp loop(i, j) on t(j, i)
#pragma acc parallel loop collapse(2) present(a, b, c)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) c[i][j] = (c[i][j] + b[i][j] + 3 * a[i - 1][j]) % MOST;
}

/* `to` may be the array that is reflected, by another name. */
static void renamed(long to[ROWS][COLUMNS], long from[ROWS][COLUMNS]) {
#pragma xmp align[i][j] with t(j, i)::to, from
#pragma xmp shadow[2][2] ::to, from
#pragma xmp reflect(from) width(/ periodic / 1 : 1, 0) acc
#pragma xmp loop(i, j) on t(j, i)
#pragma acc parallel loop collapse(2) present(to, from)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) to[i][j] = (3 * to[i][j] + 1) % MOST;
}

/* Every third row, whose first and last are not those of the nodes. */
static long inside(void) {
  long largest = 0;
#pragma xmp reflect(c) width(1 : 1, 1 : 1) acc
#pragma xmp loop(i, j) on t(j, i) reduction(max : largest)
#pragma acc parallel loop collapse(2) reduction(max : largest) present(c)
  for (int i = 1; i < ROWS - 1; i += 3)
    for (int j = 1; j < COLUMNS - 1; j++) {
      const long value = (c[i][j] + 3 * c[i - 1][j] + 5 * c[i + 1][j] + 7 * c[i][j + 1]) % MOST;
      if (value > largest) largest = value;
    }
  return largest;
}

int main(void) {
#pragma acc enter data create(a, b, c)
#pragma xmp loop(i, j) on t(j, i)
#pragma acc parallel loop collapse(2) present(a, b, c)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = (7 * i + j * j) % MOST, b[i][j] = 1, c[i][j] = j;
  long total = 0;
  int n;
  for (n = 0; n < 30; n++) {
    wide();
    corners(total);
    in_place();
    renamed(a, b);
    renamed(b, b);
    total = (total + inside()) % MOST;
    if (total < 0) break;
  }
#pragma xmp task on nodes(1, 1)
  printf("%d %ld\n", n, total);
#pragma acc exit data copyout(a, b, c)
  for (int row = 0; row < ROWS; row++) {
    long of_a = 0, of_b = 0, of_c = 0;
#pragma xmp loop(i, j) on t(j, i) reduction(+ : of_a, of_b, of_c)
    for (int i = row; i < row + 1; i++)
      for (int j = 0; j < COLUMNS; j++) {
        of_a += a[i][j] * (j + 1);
        of_b += b[i][j] * (j + 1);
        of_c += c[i][j] * (j + 1);
      }
#pragma xmp task on nodes(1, 1)
    printf("%d %ld %ld %ld\n", row, of_a, of_b, of_c);
  }
  return 0;
}
