/* reflect with all its clauses, reductions and broadcasts on sets of nodes, tasks, gmove, coarrays. */
#include "check.h"
#include "shared.h"

long shared_a[SHARED][2];
struct shared_s shared_s;
long shared_grown[SHARED][2];

void fix_shared(int n) {
#pragma xmp template_fix shared_later(0 : n - 1)
}

long sum_of_header(void) {
  long sum = 0;
#pragma xmp loop(i) on shared_t(i) reduction(+ : sum)
  for (int i = 0; i < SHARED; i++) sum += shared_a[i][1] + shared_s.v[i][1];
  return sum;
}

#define N 12
#define M 10

#pragma xmp nodes p(*)
#pragma xmp nodes rows[*][1]
#pragma xmp template t[N][M]
#pragma xmp distribute t[block][block] onto rows
#pragma xmp template line[N]
#pragma xmp distribute line[block] onto p

static int a[N][M], b[N][M], onto_line[N], copied[M][N];
#pragma xmp align a[i][j] with t[i][j]
#pragma xmp align b[ : ][ : ] with t[ : ][ : ]
#pragma xmp align onto_line[i] with line[i]
#pragma xmp align copied[*][j] with line[j]
#pragma xmp shadow a[1][1]
#pragma xmp shadow b[2 : 1][1 : 0]
#pragma xmp shadow onto_line[2]

static int x[8] : [*], y : [*];

static int around(int i, int n) { return (i + n) % n; }

static void fill(void) {
#pragma xmp loop(i, j) on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) {
      a[i][j] = 100 * i + j;
      b[i][j] = -a[i][j];
    }
}

/* The first and last row that this node owns. */
static void owned(int* first, int* last) {
  *first = N, *last = -1;
#pragma xmp loop(i) on t[i][*]
  for (int i = 0; i < N; i++) {
    if (i < *first) *first = i;
    *last = i;
  }
}

static void halos(void) {
  int first, last;
  fill();
  owned(&first, &last);
#pragma acc enter data copyin(a)
#pragma xmp reflect(a) width(/ periodic / 1, / periodic / 1) acc
#pragma acc exit data copyout(a)
  if (last >= first)
    for (int i = first - 1; i <= last + 1; i++)
      for (int j = -1; j <= M; j++) CHECK(a[i][j] == 100 * around(i, N) + around(j, M));

  fill();
#pragma xmp reflect(a, b) width(1 : 1, 0 : 0)
  if (last >= first && first > 0)
    CHECK(a[first - 1][3] == 100 * (first - 1) + 3 && b[first - 1][3] == -a[first - 1][3]);
  if (last >= first && last + 1 < N) CHECK(a[last + 1][3] == 100 * (last + 1) + 3);

  for (int turn = 0; turn < 3; turn++) { /* a width that changes between calls of one line */
#pragma xmp loop(i) on line[i]
    for (int i = 0; i < N; i++) onto_line[i] = i + 10 * turn;
    const int width = turn % 2 + 1;
#pragma xmp reflect(onto_line) width(width) async(turn)
#pragma xmp wait_async(turn) on p
    int lo = N, hi = -1;
#pragma xmp loop(i) on line[i]
    for (int i = 0; i < N; i++) lo = i < lo ? i : lo, hi = i;
    if (hi - lo + 1 == N / xmp_num_nodes() && hi - lo >= 1)
      for (int k = 1; k <= width; k++) {
        if (lo - k >= 0) CHECK(onto_line[lo - k] == lo - k + 10 * turn);
        if (hi + k < N) CHECK(onto_line[hi + k] == hi + k + 10 * turn);
      }
  }

  fill();
#pragma xmp reflect_init(a) width(/ periodic / 1, / periodic / 1) orthogonal
  for (int turn = 0; turn < 2; turn++) {
#pragma xmp loop(i, j) on t[i][j]
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) a[i][j] += turn;
#pragma xmp reflect_do(a)
    if (last >= first)
      CHECK(a[first - 1][2] == 100 * around(first - 1, N) + 2 + turn && a[first][M] == 100 * first + turn);
  }
}

static void sets(void) {
  const int me = xmp_node_num(), nodes = xmp_num_nodes();
  const int half = (nodes + 1) / 2;
  int value = me;
  double values[3] = {me, 1, -me};
#pragma xmp reduction(max : value)
  CHECK(value == nodes);
#pragma xmp reduction(+ : values) async(3)
#pragma xmp wait_async(3)
  CHECK(values[0] == nodes * (nodes + 1) / 2 && values[1] == nodes && values[2] == -values[0]);
  value = me;
#pragma xmp bcast(value)
  CHECK(value == 1);
  value = me;
#pragma xmp bcast(value) from p(nodes) async(4)
#pragma xmp wait_async(3, 4) on p(1)
  CHECK(value == nodes);
  value = 1;
#pragma xmp task on p(1 : half)
  {
#pragma xmp reduction(+ : value)
    CHECK(value == half && xmp_num_nodes() == half);
#pragma xmp barrier
  }
  CHECK(xmp_num_nodes() == nodes);
  value = 0;
#pragma xmp task on line[N - 1]
  value = 1;
#pragma xmp reduction(+ : value)
  CHECK(value == 1);
#pragma xmp tasks
  {
#pragma xmp task on p(1) nocomm
    value += 1;
#pragma xmp task on p(nodes) nocomm
    value += 1;
  }
#pragma xmp reduction(+ : value) on p( :)
  CHECK(value == nodes + 2);
}

static void moves(void) {
  int whole[M], element = 0;
  fill();
#pragma xmp gmove
  copied[:][:] = 7;
#pragma xmp gmove
  copied[2] [0:N:1] = onto_line[:];
#pragma xmp gmove
  copied[1] [2:4] = a [1:4][3];
#pragma xmp gmove async(5)
  whole[:] = a[5][:];
#pragma xmp wait_async(5)
#pragma xmp gmove
  element = a[N - 1][M - 1];
  for (int j = 0; j < M; j++) CHECK(whole[j] == 500 + j);
  CHECK(element == 100 * (N - 1) + M - 1);
#pragma xmp loop(j) on line[j]
  for (int j = 0; j < N; j++) {
    CHECK(copied[2][j] == onto_line[j] && copied[3][j] == 7);
    CHECK(copied[1][j] == (j >= 2 && j < 6 ? 100 * (j - 1) + 3 : 7));
  }
}

/* Every image adds to a counter of image 0 many times, under its lock. */
static xmp_lock_t gate : [*], gates[2][3] : [*];
static long counter : [*];
static void locks(void) {
  const int all = xmpc_num_images(), me = xmpc_this_image();
  int acquired = -1, status = -1;
  counter = 0;
  xmp_sync_all(NULL);
  for (int k = 0; k < 200; k++) {
    long value;
#pragma xmp lock(gate : [0])
    value = counter : [0];
    value++;
  counter:
    [0] = value;
#pragma xmp unlock(gate : [0])
  }
  xmp_sync_all(NULL);
  if (me == 0) CHECK(counter == 200L * all);
#pragma xmp lock(gates[1][2] : [all - 1]) stat(status)
  CHECK(status == XMP_STAT_SUCCESS);
#pragma xmp unlock(gates[1][2] : [all - 1])
  xmp_sync_all(NULL);
  if (me == all - 1) {
#pragma xmp lock(gates[1][2])
#pragma xmp lock(gates[1][2]) stat(status)
    CHECK(status == XMP_STAT_LOCKED);
  }
  xmp_sync_all(NULL);
  if (me == 0 && all > 1) {
#pragma xmp lock(gates[1][2] : [all - 1]) acquired_lock(acquired)
    CHECK(acquired == 0);
#pragma xmp lock(gates[1][1] : [all - 1]) acquired_lock(acquired)
    CHECK(acquired == 1);
#pragma xmp unlock(gates[1][1] : [all - 1])
#pragma xmp unlock(gates[1][2] : [all - 1]) stat(status)
    CHECK(status == XMP_STAT_LOCKED_OTHER_IMAGE);
#pragma xmp unlock(gates[0][0]) stat(status)
    CHECK(status == XMP_STAT_UNLOCKED);
  }
  xmp_sync_all(NULL);
  if (me == all - 1) {
#pragma xmp unlock(gates[1][2])
  }
}

static void images(void) {
  const int me = xmpc_this_image(), all = xmpc_num_images();
  const int next = (me + 1) % all;
  int got[4];
  for (int k = 0; k < 8; k++) x[k] = 10 * me + k;
  y = -1;
  xmp_sync_all(NULL);
  got [0:4] = x [0:4:2] : [next];
  for (int k = 0; k < 4; k++) CHECK(got[k] == 10 * next + 2 * k);
  xmp_sync_all(NULL);
y:
  [next] = me;
  x [6:2] : [next] = got [0:2];
  xmp_sync_all(NULL);
  CHECK(y == (me + all - 1) % all);
  CHECK(x[5] == 10 * me + 5 && x[6] == 10 * me && x[7] == 10 * me + 2);
}

void communication(void) {
  halos();
  sets();
  moves();
  locks();
  images();
}
