/* What gcc 12, whose OpenACC is 2.6, does not know: updates of sections that are not contiguous, and newer
 * clauses; and gmove in and out of copies on other nodes' GPUs.
 */
#include <openacc.h>
#include <string.h>

#include "check.h"

#define N 12
#define M 10

static int on_gpu(void) { return acc_get_device_type() != acc_device_host; }

static int grid[N][M];

/* Elements of the grid are -1 on the host and i * M + j on the GPU: which ones were copied? */
static void came(int first, int last, int from, int to) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) {
      const int moved = !on_gpu() || (first <= i && i <= last && from <= j && j <= to);
      CHECK(grid[i][j] == (moved ? i * M + j : -1));
      grid[i][j] = on_gpu() ? -1 : grid[i][j];
    }
}

static void sections(int n, int (*rows)[M], int m, int variable[n][m]) {
#pragma acc data create(grid)
  {
#pragma acc parallel loop collapse(2)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) grid[i][j] = i * M + j;
    if (on_gpu()) memset(grid, -1, sizeof grid);
#pragma acc update host(grid[2 : 3])
    came(2, 4, 0, M - 1);
#pragma acc update host(grid[0 : 2][3 : 2])
    came(0, 1, 3, 4);
#pragma acc update self(grid[5][1 : n - 4])
    came(5, 5, 1, n - 4);
#pragma acc update host(grid[ : ][M - 1 : ]) async(1)
#pragma acc wait(1)
    came(0, N - 1, M - 1, M - 1);
#pragma acc update host(rows[1 : 2][7 : 2])
    came(1, 2, 7, 8);
#pragma acc update host(variable[3 : 2][0 : 2])
    came(3, 4, 0, 1);
#pragma acc update host(variable[0 : n][0 : m])
    came(0, N - 1, 0, M - 1);
#pragma acc update host(grid[0 : 0][1 : 2], grid[n : 0])
    came(0, -1, 0, -1);
    for (int j = 0; j < M; j++) grid[6][j] = 1000 + j;
#pragma acc update device(grid[6][2 : 3], grid[7 : 1][0 : 2])
#pragma acc update host(grid[6 : 2])
    for (int j = 0; j < M; j++) CHECK(grid[6][j] == (!on_gpu() || (j >= 2 && j < 5) ? 1000 + j : 6 * M + j));
    CHECK(grid[7][1] == (on_gpu() ? -1 : 7 * M + 1) && grid[7][2] == 7 * M + 2);
  }
}

/* For a distributed array, each node copies the part of the section in its memory, with halos. */
#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp template dealt(0 : N - 1)
#pragma xmp distribute t(block) onto p
#pragma xmp distribute dealt(cyclic(2)) onto p
static int a[N][M], c[N];
#pragma xmp align a[i][*] with t(i)
#pragma xmp shadow a[1 : 1][0]
#pragma xmp align c[i] with dealt(i)

static void distributed(void) {
#pragma acc data create(a, c)
  {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) a[i][j] = i * M + j;
#pragma xmp loop(i) on dealt(i)
#pragma acc parallel loop
    for (int i = 0; i < N; i++) c[i] = i;
#pragma xmp reflect(a) acc
    if (on_gpu()) {
#pragma xmp loop(i) on t(i) expand(1)
      for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) a[i][j] = -1;
#pragma xmp loop(i) on dealt(i)
      for (int i = 0; i < N; i++) c[i] = -1;
    }
#pragma acc update host(a[3 : 5][2 : 3], c[3 : 6])
#pragma xmp loop(i) on t(i) expand(1)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++)
        CHECK(a[i][j] == (!on_gpu() || (i >= 3 && i < 8 && j >= 2 && j < 5) ? i * M + j : -1));
#pragma xmp loop(i) on dealt(i)
    for (int i = 0; i < N; i++) CHECK(c[i] == (!on_gpu() || (i >= 3 && i < 9) ? i : -1));
#pragma acc update device(a[ : ][0 : 1])
#pragma acc update host(a)
#pragma xmp loop(i) on t(i)
    for (int i = 0; i < N; i++) CHECK(a[i][0] == (on_gpu() ? -1 : i * M) && a[i][9] == i * M + 9);
  }
}

/* `self` lets the host execute a construct, and `wait` may be conditional. */
static void conditions(int yes, int no) {
  int where[4] = {0}, line[4] = {1, 2, 3, 4};
#pragma acc data create(where) copyin(readonly : line)
  {
#pragma acc parallel loop self(yes)
    for (int i = 0; i < 1; i++) where[i] = 1;
#pragma acc parallel self(no) num_gangs(1)
    {
#pragma acc loop gang(num : 1) vector(length : 32)
      for (int i = 1; i < 2; i++) where[i] = 1;
    }
#pragma acc parallel self
    {
#pragma acc loop
      for (int i = 2; i < 3; i++) where[i] = 1;
    }
#pragma acc serial self(yes) if (yes)
    where[3] = line[3] / 4;
#pragma acc wait if (no)
#pragma acc wait(1) if (yes)
  }
  for (int i = 0; i < 4; i++) CHECK(where[i] == (on_gpu() && i == 1 ? 0 : 1));
}

/* Copies on the GPU, at once and on a queue. */
static void copies(void) {
  int values[4] = {1, 2, 3, 4}, got[4] = {0}, again[4] = {0};
  int *first = (int*)acc_malloc(sizeof values), *second = (int*)acc_malloc(sizeof values);
  acc_memcpy_to_device(first, values, sizeof values);
  acc_memcpy_device_async(second, first, sizeof values, 1);
  acc_memcpy_from_device_async(got, second, sizeof values, 1);
  acc_wait(1);
  acc_memcpy_device(first, second + 1, sizeof *values);
  acc_memcpy_from_device(again, first, sizeof values);
  for (int i = 0; i < 4; i++) CHECK(got[i] == i + 1 && again[i] == (i ? i + 1 : 2));
  acc_free(first);
  acc_free(second);
}

static int b[N], e[N];
#pragma xmp align b[i] with t(i)
#pragma xmp align e[i] with t(i)

/* gmove in and out of the copies on GPUs: node 1 changes the copies of the others. */
static void by_one_node(void) {
  int got[N];
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) b[i] = i, e[i] = i;
#pragma acc data copy(b, e)
  {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop present(b)
    for (int i = 0; i < N; i++) b[i] += 50;
#pragma xmp barrier acc
#pragma xmp task on p(1)
    {
#pragma xmp gmove in
      got[:] = b[:];
      for (int i = 0; i < N; i++) CHECK(got[i] == i + (on_gpu() ? 0 : 50));
#pragma xmp gmove in acc
      got[:] = b[:];
      for (int i = 0; i < N; i++) CHECK(got[i] == i + 50);
#pragma xmp gmove out acc(e)
      e [0:N:1] = got[:];
    }
#pragma xmp barrier acc
  }
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(b[i] == i + 50 && e[i] == i + 50);
}

/* Kernels with pointers whose rows are distributed, and with one in a struct. */
static struct {
  int (*rows)[N], count;
} shared;
#pragma xmp align shared.rows[*][j] with t(j)
#pragma xmp shadow shared.rows[0][1]

static void pointers(void) {
  int (*dealt_rows)[N], sum = 0;
#pragma xmp align dealt_rows[*][j] with dealt(j)
  shared.rows = xmp_malloc(xmp_desc_of(shared.rows), M, N);
  dealt_rows = xmp_malloc(xmp_desc_of(dealt_rows), M, N);
#pragma acc data create(shared.rows) copyout(dealt_rows)
  {
#pragma xmp loop(j) on t(j)
#pragma acc parallel loop
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) shared.rows[i][j] = 10 * i + j;
#pragma xmp loop(j) on dealt(j)
#pragma acc parallel loop
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) dealt_rows[i][j] = i;
#pragma xmp loop(j) on t(j) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
    for (int j = 0; j < N; j++) sum += shared.rows[M - 1][j];
  }
  CHECK(sum == 10 * (M - 1) * N + N * (N - 1) / 2);
#pragma xmp loop(j) on dealt(j)
  for (int j = 0; j < N; j++) CHECK(dealt_rows[3][j] == 3);
  free(shared.rows);
}

/* Pointers to pointers: a section names the rows, each a separate piece of memory. */
static void rows_are(int** rows, int n, int m, int factor) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) CHECK(rows[i][j] == factor * (10 * i + j));
}

static void pointers_to_pointers(void) {
  int n = 4, m = 6, *array[4], **rows = malloc((size_t)n * sizeof *rows);
  for (int i = 0; i < n; i++) {
    rows[i] = malloc((size_t)m * sizeof **rows);
    array[i] = rows[i];
    for (int j = 0; j < m; j++) rows[i][j] = 10 * i + j;
  }
#pragma acc parallel loop copy(rows[0 : n][0 : m])
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) rows[i][j] *= 2;
  rows_are(rows, n, m, 2);
#pragma acc data copy(rows[0 : n][0 : m])
  {
#pragma acc parallel loop collapse(2)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m; j++) rows[i][j] *= 2;
    if (on_gpu()) rows_are(rows, n, m, 2);
#pragma acc update host(rows[1 : 2][1 : m - 1])
    CHECK(rows[2][1] == 4 * 21 && rows[1][5] == 4 * 15);
    CHECK(rows[3][1] == (on_gpu() ? 2 : 4) * 31 && rows[2][0] == (on_gpu() ? 2 : 4) * 20);
  }
  rows_are(rows, n, m, 4);
#pragma acc enter data copyin(array[1 : 3][2 : 4])
#pragma acc parallel loop present(array[1 : 3][2 : 4])
  for (int i = 1; i < 4; i++) array[i][2] = -i;
#pragma acc exit data copyout(array[1 : 3][2 : 4])
  for (int i = 1; i < 4; i++) CHECK(rows[i][2] == -i && rows[i][1] == 4 * (10 * i + 1));
  for (int i = 0; i < n; i++) free(rows[i]);
  free(rows);
}

/* Work of async without a number runs on the queue that was set; init and shutdown change nothing. */
static void default_queue(void) {
  int x[N] = {0};
  const int before = acc_get_default_async();
#pragma acc init device_type(default)
#pragma acc set default_async(3)
  CHECK(before >= 0 && acc_get_default_async() == 3);
#pragma acc data copy(x)
  {
#pragma acc parallel loop async
    for (int i = 0; i < N; i++) x[i] += i;
#pragma acc parallel loop async(3)
    for (int i = 0; i < N; i++) x[i] *= 2;
#pragma acc update self(x) async
#pragma acc wait(devnum : 0 : queues : 3)
    for (int i = 0; i < N; i++) CHECK(x[i] == 2 * i);
    CHECK(acc_wait_any(2, (int[]){acc_async_sync, 3}) == 1);
    CHECK(acc_wait_any(1, (int[]){acc_async_sync}) == -1);
  }
#pragma acc set default_async(before) if (before != 3)
#pragma acc shutdown
  CHECK(acc_get_default_async() == before);
}

/* A thread executes the inner loop, because an index that goes on by many steps would pass the end. */
static void until_not_equal(void) {
  int sums[4];
#pragma acc parallel loop vector_length(32) copyout(sums)
  for (int j = 0; j < 4; j++) {
    int sum = 0;
#pragma acc loop vector reduction(+ : sum)
    for (int i = j; i != 100; i++) sum += i;
    sums[j] = sum;
  }
  for (int j = 0; j < 4; j++) CHECK(sums[j] == 4950 - j * (j - 1) / 2);
}

void newer(void) {
  until_not_equal();
  default_queue();
  pointers_to_pointers();
  sections(N, grid, M, grid);
  distributed();
  copies();
  by_one_node();
  pointers();
  conditions(xmp_num_nodes() > 0, xmp_num_nodes() < 0);
}
