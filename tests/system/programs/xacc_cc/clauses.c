/* Clauses of OpenACC: what each thread has of its own, pointers of the GPU, conditions, and hints. */
#include <openacc.h>

#include "check.h"

#define N 24

typedef struct {
  int low, high;
} pair;

static int on_gpu(void) { return acc_get_device_type() != acc_device_host; }

/* What an inner loop has of its own: an array, a struct and a scalar, in order and shared by a block. */
static void own_of_inner_loops(void) {
  int out[N][4], blocks[N][4], order[N][4], scratch[4] = {7, 7, 7, 7}, one = 9;
  pair two = {5, 5};
#pragma acc parallel loop gang copyout(out)
  for (int i = 0; i < N; i++) {
#pragma acc loop vector private(scratch, two, one)
    for (int j = 0; j < 4; j++) {
      for (int k = 0; k < 4; k++) scratch[k] = i * j + k;
      two.low = scratch[1], two.high = scratch[3];
      one = two.high - two.low;
      out[i][j] = scratch[0] + one;
    }
  }
#pragma acc parallel loop gang copyout(blocks)
  for (int i = 0; i < N; i++) {
    const int base = 100 * i; /* a block does an iteration */
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
  CHECK(scratch[0] == 7 && two.low == 5 && one == 9);
}

/* An array that an iteration of a shared loop has of its own, and its inner loop fills. */
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

/* firstprivate: arrays and structs begin with the values from before and are each thread's own. */
static void copies(void) {
  int table[2][3] = {{1, 2, 3}, {4, 5, 6}}, sums[N];
  pair both = {10, 20};
#pragma acc parallel loop firstprivate(table, both) copyout(sums)
  for (int i = 0; i < N; i++) {
    const int kept = table[1][2];
    table[1][2] = i;
    both.low = i;
    sums[i] = table[0][0] + table[1][2] + both.low + both.high;
    table[1][2] = kept;
  }
  for (int i = 0; i < N; i++) CHECK(sums[i] == 21 + 2 * i);
  CHECK(table[1][2] == 6 && both.low == 10);
}

static void with_pointers(int* const there) {
  int sum = 0;
#pragma acc parallel loop deviceptr(there)
  for (int i = 0; i < N; i++) there[i] = 3 * i;
#pragma acc data deviceptr(there)
  {
#pragma acc parallel loop
    for (int i = 0; i < N; i++) there[i] += 1;
  }
#pragma acc parallel deviceptr(there)
  {
#pragma acc loop
    for (int i = 0; i < N; i++) there[i] += 1;
  }
#pragma acc parallel loop deviceptr(there) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += there[i];
  CHECK(sum == 3 * N * (N - 1) / 2 + 2 * N);
}

static void declared_pointer(int* there) {
#pragma acc declare deviceptr(there)
  int sum = 0;
#pragma acc parallel loop reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += there[i];
  CHECK(sum == 3 * N * (N - 1) / 2 + 2 * N);
}

static void pointers(void) {
  int* there = (int*)acc_malloc(N * sizeof(int));
  with_pointers(there);
  declared_pointer(there);
  acc_free(there);
}

/* Which side does the work, by what the copy on the GPU has: `if` on loops and around them. */
static void conditions(int yes, int no) {
  int where[5] = {0};
#pragma acc data create(where)
  {
#pragma acc parallel loop if (yes)
    for (int i = 0; i < 1; i++) where[i] = 1;
#pragma acc parallel loop if (no)
    for (int i = 1; i < 2; i++) where[i] = 1;
#pragma acc parallel if (no)
    {
#pragma acc loop
      for (int i = 2; i < 3; i++) where[i] = 1;
    }
#pragma acc kernels if (yes)
    {
#pragma acc loop independent
      for (int i = 3; i < 4; i++) where[i] = 1;
    }
#pragma acc serial if (no)
    where[4] = 1;
  }
  const int by_host[5] = {0, 1, 1, 0, 1};
  for (int i = 0; i < 5; i++) CHECK(where[i] == (on_gpu() ? by_host[i] : 1));
  int asked = 1, out[2][4] = {{0}};
#pragma acc data create(out)
  {
#pragma acc parallel if (asked--)
    {
#pragma acc loop
      for (int i = 0; i < 4; i++) out[0][i] = 1;
#pragma acc loop
      for (int i = 0; i < 4; i++) out[1][i] = 1;
    }
  }
  CHECK(asked == 0 && out[0][3] == !on_gpu() && out[1][0] == !on_gpu());
}

void clauses(void) {
  own_of_inner_loops();
  own_of_outer_loops();
  copies();
  pointers();
  conditions(xmp_num_nodes() > 0, xmp_num_nodes() < 0);
}
