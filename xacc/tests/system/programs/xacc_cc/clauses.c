/* Clauses of OpenACC: copies, pointers of the GPU, conditions; and C that device code does not have. */
#include <limits.h>
#include <openacc.h>
#include <tgmath.h>

#include "check.h"

#define N 24

typedef struct {
  int low, high;
} pair;

static int on_gpu(void) { return acc_get_device_type() != acc_device_host; }

/* firstprivate: arrays and structs begin with their outer values, and each thread has its own. */
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

/* The side that does the work, seen by the copy on the GPU: `if` on loops and around them. */
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
  int remaining = 1, out[2][4] = {{0}};
#pragma acc data create(out)
  {
#pragma acc parallel if (remaining--)
    {
#pragma acc loop
      for (int i = 0; i < 4; i++) out[0][i] = 1;
#pragma acc loop
      for (int i = 0; i < 4; i++) out[1][i] = 1;
    }
  }
  CHECK(remaining == 0 && out[0][3] == !on_gpu() && out[1][0] == !on_gpu());
}

#define PAIR(first) \
  (pair) { first, 2 * (first) }

static pair turned(pair of) { return (pair){.low = of.high, .high = of.low}; }

/* C that C++ for a GPU does not have: compound literals, sums of types in mathematical functions. */
static void texts(void) {
  pair pairs[N];
  int host[N], largest[N];
  double roots[N];
#pragma acc parallel loop copyout(pairs, host, largest, roots)
  for (int i = 0; i < N; i++) {
    pairs[i] = turned(i % 2 ? PAIR(i) : (pair){i, 2 * i});
    host[i] = acc_on_device(acc_device_host) + 2 * acc_on_device(acc_device_not_host);
    __typeof__(host[0]) square = i * i;
    roots[i] = sqrt(square) + pow(i, 2) + fmax(i, 1.5f);
    largest[i] = INT_MAX - i;
  }
  for (int i = 0; i < N; i++) {
    CHECK(pairs[i].low == 2 * i && pairs[i].high == i && host[i] == 1 + on_gpu());
    CHECK(fabs(roots[i] - (i + i * i + (i < 2 ? 1.5 : i))) < 1e-12 * N * N); /* pow() of a GPU may round */
    CHECK(largest[i] == INT_MAX - i);
  }
}

void clauses(void) {
  texts();
  copies();
  pointers();
  conditions(xmp_num_nodes() > 0, xmp_num_nodes() < 0);
}
