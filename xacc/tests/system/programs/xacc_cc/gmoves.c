/* Collective gmoves with acc: between distributions, to and from arrays that every node has, with both sides
 * on the GPU and with one. */
#include <openacc.h>

#include "check.h"

#define N 24
#define M 10

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p
#pragma xmp template dealt(0 : N - 1)
#pragma xmp distribute dealt(cyclic(3)) onto p
#pragma xmp template across(0 : M - 1)
#pragma xmp distribute across(block) onto p

static int a[N], b[N], cyclic[N], whole[N], alone[N];
static int rows[N][M], columns[N][M];
#pragma xmp align[i] with t(i)::a, b
#pragma xmp align cyclic[i] with dealt(i)
#pragma xmp align rows[i][*] with t(i)
#pragma xmp align columns[*][j] with across(j)
#pragma xmp shadow a[1 : 1]
#pragma xmp shadow rows[1 : 0][0]

static int on_gpu;

/* What the host has must not matter. */
static void spoil(void) {
  if (!on_gpu) return;
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) {
    a[i] = b[i] = -7;
    for (int j = 0; j < M; j++) rows[i][j] = -7;
  }
#pragma xmp loop(i) on dealt(i)
  for (int i = 0; i < N; i++) cyclic[i] = -7;
  for (int i = 0; i < N; i++) whole[i] = -7;
}

static void fill(int value) {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop present(a, b)
  for (int i = 0; i < N; i++) a[i] = value + i, b[i] = -1;
  spoil();
}

static void to_and_from_every_node(void) {
  for (int again = 0; again < 3; again++) {
    fill(100 * again);
#pragma xmp gmove acc
    whole[:] = a[:];
    for (int i = 0; i < N; i++) CHECK(whole[i] == -7 || !on_gpu); /* the host's stay */
#pragma acc update host(whole)
    for (int i = 0; i < N; i++) CHECK(whole[i] == 100 * again + i);
  }
#pragma acc parallel loop present(whole)
  for (int i = 0; i < N; i++) whole[i] = 3 * i;
  spoil();
#pragma xmp gmove acc(b, whole)
  b [1:N - 2:1] = whole [2:N - 2];
#pragma acc update host(b)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(b[i] == (i >= 1 && i < N - 1 ? 3 * (i + 1) : -1));
}

static void between_distributions(void) {
  fill(5);
#pragma xmp gmove acc
  cyclic [0:N] = a [0:N];
#pragma xmp loop(i) on dealt(i)
  for (int i = 0; i < N; i++) CHECK(cyclic[i] == -7 || !on_gpu);
#pragma acc update host(cyclic)
#pragma xmp loop(i) on dealt(i)
  for (int i = 0; i < N; i++) CHECK(cyclic[i] == 5 + i);
  spoil();
#pragma xmp gmove acc
  b [N - 1:N / 2:-2] = cyclic [0:N / 2];
#pragma acc update host(b)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(b[i] == (i % 2 ? 5 + (N - 1 - i) / 2 : -1));
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) present(rows)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) rows[i][j] = 100 * i + j;
  spoil();
  for (int again = 0; again < 2; again++) {
#pragma xmp gmove acc
    columns[:][:] = rows[:][:];
#pragma xmp gmove acc
    rows [2:5] [0:M] = columns [10:5] [0:M];
  }
#pragma acc update host(columns, rows)
#pragma xmp loop(j) on across(j)
  for (int j = 0; j < M; j++)
    for (int i = 0; i < N; i++) CHECK(columns[i][j] == 100 * (i >= 2 && i < 7 ? i + 8 : i) + j);
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) CHECK(rows[i][j] == 100 * (i >= 2 && i < 7 ? i + 8 : i) + j);
}

/* These go through the host's memory. */
static void of_other_kinds(void) {
  fill(1);
#pragma xmp gmove acc
  a [1:N - 1] = a [0:N - 1]; /* the sides overlap */
#pragma xmp gmove acc
  b[:] = a[9]; /* one element to all */
#pragma acc update host(a, b)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(a[i] == (i > 0 ? i : 1) && b[i] == 9);
#pragma xmp gmove acc
  b [3:4] = 10 * N; /* a value */
  for (int i = 0; i < N; i++) alone[i] = -i;
#pragma xmp gmove acc
  a [4:2] = alone [4:2]; /* not on the GPU */
#pragma xmp gmove acc(a)
  alone[:] = a[:];
#pragma acc update host(a, b)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) {
    CHECK(b[i] == (i >= 3 && i < 7 ? 10 * N : 9));
    CHECK(a[i] == (i == 4 || i == 5 ? -i : i > 0 ? i : 1));
  }
  for (int i = 0; i < N; i++) CHECK(alone[i] == (i == 4 || i == 5 ? -i : i > 0 ? i : 1));
}

/* A loop of kernels and gmoves, whose sequence is a graph from its second time on; and halos are old after a
 * gmove. */
static void in_sequences(void) {
  fill(0);
  for (int again = 1; again <= 4; again++) {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop present(a, b)
    for (int i = 0; i < N; i++) b[i] = a[i] + 1;
#pragma xmp gmove acc
    whole[:] = b[:];
#pragma xmp gmove acc
    a [0:N] = whole [0:N];
#pragma xmp reflect(a) width(/ periodic / 1 : 1) acc
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop present(a, b, whole)
    for (int i = 0; i < N; i++) b[i] = a[i - 1] + a[i + 1] - whole[(i + N - 1) % N] - whole[(i + 1) % N];
#pragma acc update host(a, b)
#pragma xmp loop(i) on t(i)
    for (int i = 0; i < N; i++) CHECK(a[i] == i + again && b[i] == 0);
  }
}

/* Arrays and copies of a function, which a later call has elsewhere. */
static void of_functions(int value) {
  int mine[N], own[N];
#pragma xmp align own[i] with t(i)
#pragma acc data create(mine, own)
  {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop present(own)
    for (int i = 0; i < N; i++) own[i] = value * i;
#pragma xmp gmove acc
    mine[:] = own[:];
#pragma acc update host(mine)
  }
  for (int i = 0; i < N; i++) CHECK(mine[i] == value * i);
}

/* A local array that is a part of what is present, and one that is the memory of the other side. */
static void parts_of_memory(void) {
  int many[3 * N], *const middle = many + N;
  for (int i = 0; i < 3 * N; i++) many[i] = -1;
#pragma acc enter data copyin(many)
  fill(60);
#pragma xmp gmove acc
  middle [0:N] = a [0:N];
#pragma acc update host(many)
  for (int i = 0; i < 3 * N; i++) CHECK(many[i] == (i >= N && i < 2 * N ? 60 + i - N : -1));
#pragma xmp gmove acc
  middle [0:N] = a[7]; /* through the host */
#pragma acc update host(many)
  for (int i = 0; i < 3 * N; i++) CHECK(many[i] == (i >= N && i < 2 * N ? 67 : -1));
#pragma acc exit data delete(many)
  if (xmp_all_num_nodes() > 1) return;
  int* own = NULL;
  xmp_array_laddr(xmp_desc_of(b), (void**)&own);
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop present(b)
  for (int i = 0; i < N; i++) b[i] = i;
#pragma xmp gmove acc
  b [1:N - 1] = own [0:N - 1];
#pragma acc update host(b)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(b[i] == (i > 0 ? i - 1 : 0));
}

/* Buffers that are at one place on some nodes and at another on others, on the GPU and not. */
static void elsewhere_on_some_nodes(void) {
  static int buffers[2][N];
#pragma acc enter data create(buffers)
  for (int again = 0; again < 6; again++) {
    int* const buffer = buffers[xmp_all_node_num() % 2 ? again % 2 : 0];
    int* const on_host = malloc((again * xmp_all_node_num() + 1) * 64 + sizeof(int) * N);
    fill(again);
#pragma xmp gmove acc
    buffer [0:N] = a [0:N];
#pragma acc update host(buffer[0 : N])
    for (int i = 0; i < N; i++) CHECK(buffer[i] == again + i);
#pragma xmp gmove acc(a)
    on_host [0:N] = a [0:N];
    for (int i = 0; i < N; i++) CHECK(on_host[i] == again + i);
    free(on_host);
  }
#pragma acc exit data delete(buffers)
}

#pragma xmp template few(0 : 1)
#pragma xmp distribute few(block) onto p
static int c[2], d[2];
#pragma xmp align[i] with few(i)::c, d

/* Some nodes own nothing, and execute no kernel. */
static void of_few_elements(void) {
  int pair[2], other[2];
#pragma acc data create(c, d, pair, other)
  for (int again = 0; again < 3; again++) {
#pragma xmp loop(i) on few(i)
#pragma acc parallel loop present(c, d)
    for (int i = 0; i < 2; i++) c[i] = again + i, d[i] = again - i;
#pragma xmp gmove acc
    pair[:] = c[:];
#pragma xmp gmove acc
    other[:] = d[:];
#pragma acc update host(pair, other)
    for (int i = 0; i < 2; i++) CHECK(pair[i] == again + i && other[i] == again - i);
  }
}

/* A section that moves on, so that each is a plan of its own. */
static void of_many_sections(void) {
  fill(0);
  int line[4];
#pragma acc data create(line)
  for (int first = 0; first <= N - 4; first++) {
#pragma xmp gmove acc
    line[:] = a [first:4];
#pragma acc update host(line)
    for (int i = 0; i < 4; i++) CHECK(line[i] == first + i);
  }
}

/* Only some nodes execute. */
static void in_a_task(void) {
  fill(40);
#pragma xmp task on p(1)
  {
#pragma xmp gmove acc
    whole [0:1] = a [0:1];
#pragma acc update host(whole)
    CHECK(whole[0] == 40);
  }
}

void gmoves(void) {
  on_gpu = acc_get_device_type() != acc_device_host;
#pragma acc enter data create(a, b, cyclic, whole, rows, columns)
  to_and_from_every_node();
  between_distributions();
  of_other_kinds();
  in_sequences();
  for (int value = 1; value < 4; value++) of_functions(value);
  parts_of_memory();
  elsewhere_on_some_nodes();
  of_few_elements();
  of_many_sections();
  in_a_task();
#pragma acc exit data delete(a, b, cyclic, whole, rows, columns)
}
