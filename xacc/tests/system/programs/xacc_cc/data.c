/* The data clauses of OpenACC in all forms: which side has which data afterwards. On CPUs, host and device
 * memory are the same. */
#include <openacc.h>
#include <string.h>

#include "check.h"

#define N 12
#define M 10

static int x[N], out[N];

static int on_gpu(void) { return acc_get_device_type() != acc_device_host; }

static void begin(void) {
  for (int i = 0; i < N; i++) x[i] = i;
}

/* x was i; it is 3 i if a copy came back, or if there is no copy. */
static void end(int back) {
  const int factor = back || !on_gpu() ? 3 : 1;
  for (int i = 0; i < N; i++) CHECK(x[i] == factor * i);
  CHECK(!on_gpu() || !acc_is_present(x, sizeof x));
}

static void triple(void) {
#pragma acc parallel loop default(present)
  for (int i = 0; i < N; i++) x[i] *= 3;
}

static void set_and_triple(void) {
#pragma acc parallel loop default(none) present(x)
  for (int i = 0; i < N; i++) x[i] = i;
  triple();
}

static void structured(void) {
  begin();
#pragma acc data copy(x)
  triple();
  end(1);
  begin();
#pragma acc data pcopy(x)
  triple();
  end(1);
  begin();
#pragma acc data present_or_copy(x)
  triple();
  end(1);
  begin();
#pragma acc data copyin(x)
  triple();
  end(0);
  begin();
#pragma acc data pcopyin(x)
  triple();
  end(0);
  begin();
#pragma acc data present_or_copyin(x)
  triple();
  end(0);
  begin();
#pragma acc data copyout(x)
  set_and_triple();
  end(1);
  begin();
#pragma acc data pcopyout(x)
  set_and_triple();
  end(1);
  begin();
#pragma acc data present_or_copyout(x)
  set_and_triple();
  end(1);
  begin();
#pragma acc data create(x)
  set_and_triple();
  end(0);
  begin();
#pragma acc data pcreate(x)
  set_and_triple();
  end(0);
  begin();
#pragma acc data present_or_create(x)
  set_and_triple();
  end(0);
  begin();
#pragma acc data copy(x)
#pragma acc data no_create(x)
  triple();
  end(1);
  begin();
#pragma acc data no_create(x)
  CHECK(!on_gpu() || !acc_is_present(x, sizeof x));
  begin();
#pragma acc data copyin(x) if (N < 0)
  CHECK(!on_gpu() || !acc_is_present(x, sizeof x));
}

/* enter and exit are counted; finalize ends all. */
static void unstructured(void) {
  begin();
#pragma acc enter data copyin(x)
#pragma acc enter data pcopyin(x) if (N > 0)
#pragma acc enter data present_or_copyin(x) if (N < 0)
  triple();
#pragma acc exit data copyout(x)
  CHECK(!on_gpu() || x[1] == 1);
#pragma acc exit data pcopyout(x)
  end(1);
  begin();
#pragma acc enter data create(x)
#pragma acc enter data pcreate(x) async(1)
#pragma acc enter data present_or_create(x) wait(1)
  set_and_triple();
#pragma acc exit data present_or_copyout(x) finalize
  end(1);
  begin();
#pragma acc enter data copyin(x)
  triple();
#pragma acc exit data delete(x)
  end(0);
#pragma acc update host(x) if_present
#pragma acc update device(x) if (N < 0)
  begin();
#pragma acc data copyin(x)
  {
    triple();
#pragma acc update self(x) if (N < 0)
    CHECK(x[1] == (on_gpu() ? 1 : 3));
#pragma acc update self(x) async(2)
#pragma acc wait(2)
    CHECK(x[1] == 3);
  }
}

/* A queue continues after others: the clause wait, on constructs and directives. */
static void queues(void) {
  memset(out, 0, sizeof out);
#pragma acc data create(x) copy(out)
  {
#pragma acc parallel loop async(1)
    for (int i = 0; i < N; i++) x[i] = i;
#pragma acc parallel loop wait(1) async(2)
    for (int i = 0; i < N; i++) out[i] = x[i] + 1;
#pragma acc wait(2) async(3)
#pragma acc parallel loop async(3)
    for (int i = 0; i < N; i++) out[i] *= 2;
#pragma acc update host(out) wait(3)
    for (int i = 0; i < N; i++) CHECK(out[i] == 2 * (i + 1));
  }
}

/* The host's address of a variable that is not on the GPU. */
static void if_present(void) {
  int* address = 0;
#pragma acc host_data use_device(x) if_present
  address = x;
  CHECK(address == x);
#pragma acc data create(x)
  {
#pragma acc host_data use_device(x) if_present
    address = x;
    CHECK((address == x) == !on_gpu() && address == (on_gpu() ? acc_deviceptr(x) : x));
  }
}

/* The functions of openacc.h that have a queue, end all counts, or copy on the GPU. */
static void functions(void) {
  begin();
  acc_pcopyin(x, sizeof x);
  acc_copyin_async(x, sizeof x, 1);
  acc_wait(1);
  triple();
  CHECK(!on_gpu() || x[1] == 1);
  acc_update_self_async(x, sizeof x, 2);
  acc_wait(2);
  CHECK(x[1] == 3);
  begin();
  acc_update_device_async(x, sizeof x, acc_async_noval);
  acc_wait_all();
  triple();
  acc_copyout_finalize(x, sizeof x);
  end(1);
  begin();
  acc_create_async(x, sizeof x, 1);
  acc_pcreate(x, sizeof x);
  acc_wait(1);
  set_and_triple();
  acc_delete(x, sizeof x);
  acc_copyout_async(x, sizeof x, 3);
  acc_wait(3);
  end(1);
  begin();
  acc_copyin(x, sizeof x);
  acc_copyin(x, sizeof x);
  triple();
  acc_delete_finalize(x, sizeof x);
  end(0);
  begin();
  acc_copyin(x, sizeof x);
  acc_delete_async(x, sizeof x, 1);
  acc_copyin(x, sizeof x);
  acc_copyin(x, sizeof x);
  triple();
  acc_copyout_finalize_async(x, sizeof x, 1);
  acc_wait(1);
  end(1);
  begin();
  int* copy = (int*)acc_malloc(sizeof x);
  acc_memcpy_to_device_async(copy, x, sizeof x, 1);
  acc_memcpy_from_device_async(out, copy, sizeof x, 1);
  acc_wait(1);
  CHECK(memcmp(x, out, sizeof x) == 0);
  acc_free(copy);
}

static int grid[N][M];

/* Data clauses of rows, of a part of a row, and of memory behind a pointer. */
static void contiguous(int n, int m, int variable[n][m]) {
  int (*rows)[M] = grid;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) grid[i][j] = 0;
#pragma acc parallel loop copy(grid[2 : 3][0 : M])
  for (int i = 2; i < 5; i++) grid[i][1] = 1;
#pragma acc parallel loop copy(grid[5 : 1][3 : 2])
  for (int j = 3; j < 5; j++) grid[5][j] = 1;
#pragma acc parallel loop copy(rows[6 : 2])
  for (int i = 6; i < 8; i++) rows[i][1] = 1;
#pragma acc parallel loop copy(variable[8 : 2][0 : m])
  for (int i = 8; i < 10; i++) variable[i][1] = 1;
  int sum = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) sum += grid[i][j];
  CHECK(sum == 9);
}

void data(void) {
  structured();
  unstructured();
  queues();
  if_present();
  functions();
  contiguous(N, M, grid);
}
