/* What a thread has of its own: private and firstprivate, of loops in each place, and of one thread's work.
 */
#include <openacc.h>

#include "check.h"

#define N 24

typedef struct {
  int low, high;
} pair;

/* An inner loop's own variables: an array, a struct and a scalar, in order and shared by a block. */
static void own_of_inner_loops(void) {
  int out[N][4], blocks[N][4], order[N][4], scratch[4] = {7, 7, 7, 7}, difference = 9;
  pair two = {5, 5};
#pragma acc parallel loop gang copyout(out)
  for (int i = 0; i < N; i++) {
#pragma acc loop vector private(scratch, two, difference)
    for (int j = 0; j < 4; j++) {
      for (int k = 0; k < 4; k++) scratch[k] = i * j + k;
      two.low = scratch[1], two.high = scratch[3];
      difference = two.high - two.low;
      out[i][j] = scratch[0] + difference;
    }
  }
#pragma acc parallel loop gang copyout(blocks)
  for (int i = 0; i < N; i++) {
    const int base = 100 * i; /* a block executes an iteration */
#pragma acc loop vector private(scratch, two)
    for (int j = 0; j < 4; j++) {
      for (int k = 0; k < 4; k++) scratch[k] = base + j + k;
      two.low = scratch[0], two.high = scratch[3];
      blocks[i][j] = two.high + two.low;
    }
  }
#pragma acc parallel loop copyout(order)
  for (int i = 0; i < N; i++) {
    int last = 0;
#pragma acc loop seq private(scratch)
    for (int j = 0; j < 4; j++) {
      scratch[j] = last + j;
      last = scratch[j];
      order[i][j] = last;
    }
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < 4; j++) CHECK(out[i][j] == i * j + 2 && order[i][j] == j * (j + 1) / 2);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < 4; j++) CHECK(blocks[i][j] == 200 * i + 2 * j + 3);
  CHECK(scratch[0] == 7 && two.low == 5 && difference == 9);
}

/* An array private to each iteration of a shared loop, filled by its inner loop. */
static void own_of_outer_loops(void) {
  int turned[N][8], again[N][8], line[8] = {0};
#pragma acc parallel loop gang copyout(turned)
  for (int i = 0; i < N; i++) {
    int row[8];
#pragma acc loop vector
    for (int j = 0; j < 8; j++) row[j] = 10 * i + j;
#pragma acc loop vector
    for (int j = 0; j < 8; j++) turned[i][j] = row[7 - j];
  }
#pragma acc parallel loop gang private(line) copyout(again)
  for (int i = 0; i < N; i++) {
    line[0] = i;
    for (int j = 1; j < 8; j++) line[j] = line[j - 1] + 1;
#pragma acc loop vector
    for (int j = 0; j < 8; j++) again[i][j] = line[j];
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < 8; j++) CHECK(turned[i][j] == 10 * i + 7 - j && again[i][j] == i + j);
}

/* private with the index of its own loop, in each kind of loop. */
static void own_indices(void) {
  int i, j, b[8][N][4];
  for (int q = 0; q < 8 * N * 4; q++) (&b[0][0][0])[q] = -1;
#pragma acc parallel loop private(i, j) copy(b)
  for (i = 0; i < N; i++)
    for (j = 0; j < 4; j++) b[0][i][j] = i + j;
#pragma acc kernels copy(b)
  {
#pragma acc loop private(i, j)
    for (i = 0; i < N; i++)
      for (j = 0; j < 4; j++) b[1][i][j] = i + j;
  }
#pragma acc parallel copy(b)
#pragma acc loop seq private(i, j) collapse(2)
  for (i = 0; i < N; i++)
    for (j = 0; j < 4; j++) b[2][i][j] = i + j;
#pragma acc parallel loop gang copy(b)
  for (i = 0; i < N; i++) {
    int sum = 0;
#pragma acc loop private(j)
    for (j = 0; j < 4; j++) b[3][i][j] = i + j;
#pragma acc loop seq private(j)
    for (j = 0; j < 4; j++) b[4][i][j] = i + j;
#pragma acc loop vector private(j)
    for (j = 0; j < 4; j++) b[5][i][j] = i + j;
#pragma acc loop seq private(j) reduction(+ : sum)
    for (j = 0; j < 4; j++) sum += b[6][i][j] = i + j;
    for (j = 0; j < 4; j++) b[7][i][j] = sum - 3 * i - 6 + j;
  }
  for (int q = 0; q < 8; q++)
    for (i = 0; i < N; i++)
      for (j = 0; j < 4; j++) CHECK(b[q][i][j] == i + j);
}

/* Private memory behind pointers: sections with sizes known at compile time, and only at run time. */
static void own_sections(int n, int large) {
  int *few = malloc(sizeof(int[8])), *some = malloc(n * sizeof(int)), *many = malloc(large * sizeof(int));
  long out[6][N];
  for (int k = 0; k < 8; k++) few[k] = 10 * k;
  for (int k = 0; k < n; k++) some[k] = 100 + k;
  for (int k = 0; k < large; k++) many[k] = k;
#pragma acc parallel loop private(few[0 : 8], some[2 : n - 2]) copyout(out)
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < 8; k++) few[k] = i * k;
    for (int k = 2; k < n; k++) some[k] = i + few[k % 8];
    out[0][i] = few[7];
    out[1][i] = some[n - 1];
  }
#pragma acc parallel loop firstprivate(few[1 : 7], some[2 : n - 2]) copy(out)
  for (int i = 0; i < N; i++) {
    const int was = few[7], kept = some[n - 1];
    few[7] += i, some[n - 1] += i;
    out[2][i] = few[7] + few[1];
    out[3][i] = some[n - 1] + some[2];
    few[7] = was, some[n - 1] = kept;
  }
#pragma acc parallel copy(out) private(many[0 : large])
  {
#pragma acc loop
    for (int i = 0; i < N; i++) {
      long sum = 0;
      for (int k = 0; k < large; k++) many[k] = i;
      for (int k = 0; k < large; k++) sum += many[k];
      out[4][i] = sum;
    }
  }
#pragma acc serial firstprivate(few[0 : 8]) copy(out)
  for (int i = 0; i < N; i++) out[5][i] = few[i % 8]++;
  for (int i = 0; i < N; i++) {
    CHECK(out[0][i] == 7 * i && out[1][i] == i + i * ((n - 1) % 8));
    CHECK(out[2][i] == 80 + i && out[3][i] == 201 + n + i && out[4][i] == (long)large * i);
    CHECK(out[5][i] == i % 8 * 10 + i / 8);
  }
  for (int k = 0; k < 8; k++) CHECK(few[k] == 10 * k);
  for (int k = 0; k < n; k++) CHECK(some[k] == 100 + k);
  for (int k = 0; k < large; k++) CHECK(many[k] == k);
  free(few), free(some), free(many);
}

static int of_file = 5;
#pragma acc declare create(of_file)

/* Work of one thread: scalars are private, but kernels copies them back; declared variables stay. */
static void one_thread(int* there) {
  int own = 1, same = 2, back = 3, inner = 0, a[N] = {1}, b[N];
#pragma acc parallel firstprivate(own) copyout(a)
  {
    own += 1, same += 1;
    for (int i = 0; i < N; i++) a[i] = own + same;
  }
#pragma acc kernels
  {
    back += 1;
#pragma acc loop
    for (int i = 1; i < N; i++) a[i] += a[i - 1];
  }
#pragma acc parallel copyout(b)
  {
#pragma acc loop seq
    for (int i = 0; i < N; i++) b[i] = i < 1 ? 7 : b[i - 1] + 1;
#pragma acc loop reduction(+ : inner)
    for (int i = 0; i < N; i++) inner += b[i];
  }
  double stacked = 1;
#pragma acc parallel
#pragma acc loop reduction(+ : stacked)
  for (int i = 0; i < N; i++) stacked += i;
  CHECK(stacked == 1 + N * (N - 1) / 2);
#pragma acc update device(of_file)
#pragma acc parallel
  of_file += 2;
#pragma acc parallel loop
  for (int i = 0; i < 1; i++) of_file *= 3;
#pragma acc update self(of_file)
#pragma acc parallel copy(there[0 : 2])
  {
    int* const second = there + 1;
    *there += 1, *(there + 1) = 4, *second += 1;
  }
  CHECK(own == 1 && same == 2 && back == 4 && inner == N * 7 + N * (N - 1) / 2 && of_file == 21);
  for (int i = 0; i < N; i++) CHECK(a[i] == 5 * (i + 1) && b[i] == 7 + i);
  CHECK(there[0] == 4 && there[1] == 5);
}

void own_of_threads(void) {
  own_of_inner_loops();
  own_of_outer_loops();
  own_indices();
  own_sections(13, 5000);
  one_thread((int[]){3, 0});
}
