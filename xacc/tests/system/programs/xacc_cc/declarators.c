/* Arrays declared in all ways that C has, and the data clauses of an enclosing construct. */
#include <string.h>

#include "check.h"

#define N 29

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p

static int value = 3, behind[N], others[] = {1, 2}, *pointer = &value, last[N];
typedef int row[N];
typedef double plane[2][N];
row plain, of_type;
static row hidden, rows[3];
plane planes;
int(brackets)[N], more, ((twice))[N];
int seen[N];
extern int seen[N];
#pragma xmp align behind[i] with t(i)
#pragma xmp align last[i] with t(i)
#pragma xmp align of_type[i] with t(i)
#pragma xmp align hidden[i] with t(i)
#pragma xmp align rows[*][i] with t(i)
#pragma xmp align planes[*][i] with t(i)
#pragma xmp align brackets[i] with t(i)
#pragma xmp align twice[i] with t(i)
#pragma xmp align seen[i] with t(i)
#pragma xmp shadow behind[1 : 1]

/* Outside functions a size may be a variable, as other compilers allow, with its value from before main. */
static int size = N;
static int sized[size][size];
#pragma xmp template t_sized(0 : size - 1)
#pragma xmp distribute t_sized(block) onto p
#pragma xmp align sized[i][*] with t_sized(i)

static void ways(void) {
  row local, own = {3};
  int(also)[N];
#pragma xmp align local[i] with t(i)
#pragma xmp align also[i] with t(i)
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) {
    behind[i] = last[i] = of_type[i] = hidden[i] = rows[2][i] = i;
    brackets[i] = twice[i] = seen[i] = local[i] = also[i] = i;
    planes[1][i] = i;
  }
  int sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
  for (int i = 0; i < N; i++) {
    sum += behind[i] + last[i] + of_type[i] + hidden[i] + rows[2][i] + (int)planes[1][i];
    sum += brackets[i] + twice[i] + seen[i] + local[i] + also[i];
  }
  int sizes = 0;
#pragma xmp loop on t_sized(i) reduction(+ : sizes)
  for (int i = 0; i < size; i++) {
    sized[i][size - 1] = i;
    sizes += sized[i][size - 1] + sized[i][0];
  }
  CHECK(sizes == N * (N - 1) / 2);
  int *pointer_to = own, (*planes_of)[2] = (int (*)[2])own;
#pragma xmp gmove
  pointer_to [1:10] = last [5:10];
  CHECK(own[1] == 5 && own[10] == 14 && own[0] == 3);
#pragma xmp gmove
  planes_of [2:3][1] = last [5:3];
  CHECK(own[5] == 5 && own[7] == 6 && own[9] == 7);
  CHECK(sum == 11 * N * (N - 1) / 2);
  CHECK(own[0] == 3 && own[N - 1] == 0 && *pointer == 3 && others[1] == 2 && more == 0);
}

/* Arrays and pointers with named types are not scalars in a kernel. */
typedef double* vector;

static void named_types(void) {
  double memory[N];
  vector v = memory;
#pragma acc parallel loop copyout(v[0 : N])
  for (int i = 0; i < N; i++) {
    v[i] = i;
    plain[i] = 2 * i;
  }
  for (int i = 0; i < N; i++) CHECK(memory[i] == i && plain[i] == 2 * i);
}

/* A section in an enclosing construct is on the GPU as that section, with the bounds it had then. */
#define LONG 100

static int part[LONG], square[8][8];

static void fill(int* first, int count) {
#pragma acc parallel loop
  for (int i = 0; i < count; i++) first[i] += 1000;
}

static void fill_array(int first[10]) {
#pragma acc parallel loop
  for (int i = 0; i < 10; i++) first[i] += 1000;
}

static int sections_around(int from, int* all, int n) {
  int failed = 0;
  for (int i = 0; i < LONG; i++) part[i] = all[i] = i;
#pragma acc data copy(part[from : 40], all[from : n])
  {
    const int first = from;
    from = 0; /* the bounds are those from the construct's beginning */
#pragma acc parallel loop
    for (int i = first; i < first + 40; i++) {
      part[i] += 1000;
      all[i] += part[i];
    }
#pragma acc parallel
#pragma acc loop reduction(+ : failed)
    for (int i = first; i < first + 40; i++) failed += part[i] != i + 1000;
    fill(part + first, 10);
    fill_array(part + first + 5);
    fill_array(part + first + 35 - 5);
  }
  for (int i = 0; i < LONG; i++) {
    const int inside = i >= 20 && i < 60;
    const int more = (i >= 20 && i < 30) + (i >= 25 && i < 35) + (i >= 50 && i < 60);
    CHECK(part[i] == i + (inside ? 1000 + 1000 * more : 0));
    CHECK(all[i] == (inside ? 2 * i + 1000 : i));
  }
  return failed;
}

static void rows_around(void) {
  memset(square, 0, sizeof square);
#pragma acc data copyin(square[2 : 3]) if (part[0] == 0)
  {
#pragma acc data copyout(square[2 : 3])
#pragma acc parallel loop
    for (int i = 2; i < 5; i++)
      for (int j = 0; j < 8; j++) square[i][j] = 10 * i + j;
#pragma acc update host(square[3][1 : 2])
    CHECK(square[3][1] == 31 && square[3][2] == 32);
  }
}

/* An address on the GPU before the section must still lead to the section's elements. */
static void host_data_of_a_section(void) {
  for (int i = 0; i < LONG; i++) part[i] = i;
#pragma acc data copy(part[20 : 40])
  {
    int* device;
#pragma acc host_data use_device(part)
    device = part;
#pragma acc parallel loop deviceptr(device)
    for (int i = 20; i < 60; i++) device[i] = -i;
  }
  for (int i = 0; i < LONG; i++) CHECK(part[i] == (i >= 20 && i < 60 ? -i : i));
}

static void sections_of_data(void) {
  int all[LONG];
  CHECK(sections_around(20, all, 40) == 0);
  rows_around();
  host_data_of_a_section();
}

/* The name of a distributed array is the address of this node's part on the GPU, also as an argument. */
static void* same(void* address) { return address; }

static void host_data_of_a_node(void) {
  int local[N];
#pragma xmp align local[i] with t(i)
  void *device = 0, *again = 0, *other = 0;
#pragma acc data create(local, seen)
  {
#pragma acc host_data use_device(local)
    device = local;
#pragma acc host_data use_device(local, seen)
    {
      again = same(local);
      other = seen;
    }
  }
  CHECK(device != 0 && device == again && device != other);
}

/* Images in two dimensions, of which the first varies fastest. */
static int across = 1;
static int far[3] : [across][*], value_there;
#pragma xmp coarray value_there : [across][*]

static void images(void) {
  const int all = xmp_num_images(), me = xmpc_this_image();
  across = all % 2 == 0 ? 2 : 1;
  const int x = me % across, y = me / across, next = (y + 1) % (all / across);
  for (int i = 0; i < 3; i++) far[i] = 10 * me + i;
  xmp_sync_all(NULL);
  int got[3];
  got [0:3] = far [0:3] : [x][next];
  CHECK(got[2] == 10 * (x + across * next) + 2);
  value_there = me;
  xmp_sync_all(NULL);
  got[1] = value_there : [across - 1 - x][next];
  CHECK(got[1] == across - 1 - x + across * next);
}

void declarators(void) {
  ways();
  named_types();
  sections_of_data();
  host_data_of_a_node();
  images();
}
