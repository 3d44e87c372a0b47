/* Data clauses newer than OpenACC 2.6, which gcc 12 does not know: a variable in two clauses of a
 * directive, zero, rows in declare. */
#include <openacc.h>

#include "check.h"

#define N 12
#define M 10

static int x[N];
static int grid[N][M];

static int on_gpu(void) { return acc_get_device_type() != acc_device_host; }

static void begin(void) {
  for (int i = 0; i < N; i++) x[i] = i;
}

static void triple(void) {
#pragma acc parallel loop default(present)
  for (int i = 0; i < N; i++) x[i] *= 3;
}

/* Adds i to each element on the device. */
static void add(void) {
#pragma acc parallel loop present(x)
  for (int i = 0; i < N; i++) x[i] += i;
}

static int are(int factor) {
  int right = 0;
  for (int i = 0; i < N; i++) right += x[i] == factor * i;
  return right == N;
}

/* One variable in two clauses, both of which take effect. */
static void twice(void) {
  int sum = 5;
  begin();
#pragma acc data copyin(x) copyout(x)
  triple();
  CHECK(are(3));
  begin();
#pragma acc parallel loop copyout(x[0 : N]) copy(x[0 : N])
  for (int i = 0; i < N; i++) x[i] += i;
  CHECK(are(2));
  begin();
#pragma acc data create(x) copyin(x)
  triple();
  CHECK(are(on_gpu() ? 1 : 3));
#pragma acc parallel loop copyin(sum) copyout(sum) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += i;
  CHECK(sum == 5 + N * (N - 1) / 2);
#pragma acc data copyin(x[0 : N / 2]) copyout(x[N / 2 : N / 2])
  ;
}

/* Zeros when the device gets its memory; on CPUs that is the program's own. */
static void zeros(void) {
  begin();
#pragma acc data copyout(zero : x)
  add();
  CHECK(are(1));
  begin();
#pragma acc parallel loop copyout(zero : x[0 : N])
  for (int i = 0; i < N; i++) x[i] += 4 * i;
  CHECK(are(4));
  begin();
#pragma acc kernels copyout(x) create(zero : x)
  {
    for (int i = 0; i < N; i++) x[i] += 2 * i;
    for (int i = 0; i < N; i++) x[i] += i;
  }
  CHECK(are(3));
  begin();
#pragma acc data copy(x) /* present: no zeros */
  {
#pragma acc data create(zero : x)
    add();
#pragma acc parallel loop copyout(zero : x)
    for (int i = 0; i < N; i++) x[i] += i;
  }
  CHECK(are(3));
  begin();
#pragma acc enter data create(zero : x)
  add();
#pragma acc exit data copyout(x)
  CHECK(are(1));
  begin();
#pragma acc enter data copyin(x)
#pragma acc enter data create(zero : x)
  add();
#pragma acc exit data delete(x)
#pragma acc exit data copyout(x)
  CHECK(are(2));
  begin();
#pragma acc data create(zero : x) if (N == 0)
  ;
  CHECK(are(1));
#pragma acc data create(zero : x)
  ;
  CHECK(are(on_gpu() ? 1 : 0));
}

/* Rows that stay until a function returns. */
static void of_function(int n, int m, int** rows) {
#pragma acc declare copyin(rows[0 : n][0 : m])
#pragma acc parallel loop
  for (int i = 0; i < n; i++) rows[i][m - 1] += 1;
#pragma acc update self(rows[0 : 1][0 : m])
}
static void rows_of_function(void) {
  int* rows[N];
  for (int i = 0; i < N; i++) rows[i] = grid[i];
  for (int i = 0; i < N; i++) grid[i][M - 1] = i;
  for (int call = 1; call < 3; call++) {
    of_function(N, M, rows);
    CHECK(grid[0][M - 1] == call);
    CHECK(grid[1][M - 1] == (on_gpu() ? 1 : 1 + call));
    CHECK(!on_gpu() || (!acc_is_present(rows, sizeof rows) && !acc_is_present(grid[1], sizeof grid[1])));
  }
}

void data_newer(void) {
  twice();
  zeros();
  rows_of_function();
}
