/* Subscripts outside a node's memory, one for each number on the command line. The variables beside an
 * array must keep their values, so the program must end first. 0 uses only subscripts in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <xmp.h>
#define N 8
#pragma xmp nodes p[2][2]
#pragma xmp template t[N][N]
#pragma xmp distribute t[block][block] onto p
#pragma xmp template wide[N][2 * N]
#pragma xmp distribute wide[block][block] onto p
#pragma xmp nodes q[4] = p
#pragma xmp template dealt[N][N]
#pragma xmp distribute dealt[cyclic][*] onto q
static int a[N][N], b[N][N], c[N], d[N][N], e[N][N];
#pragma xmp align a[i][j] with t[i][j]
#pragma xmp align b[i][j] with t[i][j]
#pragma xmp shadow b[1][1]
#pragma xmp align c[i] with wide[*][i + 2]
#pragma xmp align d[i][j] with dealt[i][j]
#pragma xmp align e[i][j] with t[i][j]
#pragma xmp shadow e[*][0]

static void of_other_dimension(void) {
#pragma xmp loop on t[j][i]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[i][j] = 1;
}
static void mirrored(void) {
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[N - 1 - i][j] = 1;
}
static void of_smaller_array(void) {
#pragma xmp loop on wide[*][i + 2]
  for (int i = 0; i < 2 * N - 2; i++) c[i] = 1;
}
static void of_nodes(void) {
#pragma xmp loop on p[*][i]
  for (int i = 0; i < 2; i++) a[0][i + 5] = 1;
}
static void beyond_shadow(int far) {
  const int reach = far;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) b[i][j + reach] = 1;
}
static void of_cyclic(void) {
#pragma xmp loop on dealt[i][*]
  for (int i = 0; i < N; i++) d[i + 1][0] = 1;
}
static void of_full_shadow(void) {
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) e[i + 1][j] = 1;
}
static void in_construct(void) {
#pragma xmp loop on t[j][i]
#pragma acc parallel loop collapse(2) copy(a)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[i][j] = 1;
}
static void of_cyclic_in_construct(void) {
#pragma xmp loop on dealt[i][*]
#pragma acc parallel loop copy(d)
  for (int i = 0; i < N; i++) d[i + 1][0] = 1;
}

static int what_all_have(void) {
  int wrong = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[i][j] = b[i][j] = e[i][j] = i * N + j;
#pragma xmp reflect(b)
#pragma xmp loop on t[i][j] reduction(+ : wrong)
  for (int i = 1; i < N - 1; i++)
    for (int j = 1; j < N - 1; j++) {
      const int up = i + 1, first = i == 0 ? 0 : i - 1;
      wrong += b[up][j] + b[i][j - 1] + b[first][j + 1] != 3 * a[i][j];
    }
#pragma xmp loop on wide[*][i + 2] reduction(+ : wrong)
  for (int i = 0; i < N; i++) c[i] = i, wrong += c[i] != i;
#pragma xmp loop on dealt[i][*] reduction(+ : wrong)
  for (int i = 0; i < N; i++) d[i][0] = i, wrong += d[i][0] != i;
  return wrong;
}

int main(int argc, char** argv) {
  switch (argc > 1 ? atoi(argv[1]) : 0) {
    case 1:
      of_other_dimension();
      break;
    case 2:
      mirrored();
      break;
    case 3:
      of_smaller_array();
      break;
    case 4:
      of_nodes();
      break;
    case 5:
      beyond_shadow(argc);
      break;
    case 6:
      of_cyclic();
      break;
    case 7:
      of_full_shadow();
      break;
    case 8:
      in_construct();
      break;
    case 9:
      of_cyclic_in_construct();
      break;
  }
  const int wrong = what_all_have();
  if (xmp_node_num() == 1) printf("%d wrong\n", wrong);
  return wrong;
}
