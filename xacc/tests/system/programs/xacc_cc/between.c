/* Communication by rarer directives: reduce_shadow, post and wait, coarrays by a directive, gmove in and
 * out by only some nodes, gmove with acc of one side, bcast with on and from. */
#include <openacc.h>

#include "check.h"

#define N 12

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p
static int a[N], b[N], c[N];
#pragma xmp align a[i] with t(i)
#pragma xmp align b[i] with t(i)
#pragma xmp align c[i] with t(i)
#pragma xmp shadow a[1 : 1]

static int line[4], place;
#pragma xmp coarray line, place : [*]

/* Every node adds 1 to its elements and to both neighbours of each. */
static void add_to_neighbours(void) {
#pragma xmp loop(i) on t(i) expand(1)
  for (int i = 0; i < N; i++) a[i] = 0;
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) {
    a[i] += 1;
    if (i > 0) a[i - 1] += 1;
    if (i < N - 1) a[i + 1] += 1;
  }
}

/* Halos are added to their owners. */
static void shadows(void) {
  add_to_neighbours();
#pragma xmp reduce_shadow(a)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(a[i] == 3 - (i == 0) - (i == N - 1));
  add_to_neighbours();
#pragma xmp reduce_shadow(a) orthogonal async(4)
#pragma xmp wait_async(4)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(a[i] == 3 - (i == 0) - (i == N - 1));
}

/* A ring: each node puts to the next, posts, and waits for the previous. */
static void posts(void) {
  const int me = xmp_node_num(), nodes = xmp_num_nodes();
  const int next = me % nodes, before = (me + nodes - 2) % nodes + 1; /* an image from 0, a node from 1 */
  place = -1;
  xmp_sync_all(NULL);
place:
  [next] = me;
#pragma xmp post(p(next + 1), 7)
#pragma xmp wait(p(before), 7)
  CHECK(place == before);
#pragma xmp post(p(next + 1), 8)
#pragma xmp wait(p(before))
#pragma xmp post(p(next + 1), 9)
#pragma xmp wait
  xmp_sync_all(NULL);
  for (int k = 0; k < 4; k++) line[k] = 10 * me + k;
  xmp_sync_all(NULL);
  int got[2];
  got [0:2] = line [1:2] : [next];
  CHECK(got[0] == 10 * (next + 1) + 1 && got[1] == 10 * (next + 1) + 2);
  xmp_sync_all(NULL);
}

static void moves(void) {
  int whole[N], mine[N];
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) b[i] = i, c[i] = 0;
#pragma xmp barrier
#pragma xmp gmove in
  whole[:] = b[:];
  for (int i = 0; i < N; i++) mine[i] = 5 * whole[i];
#pragma xmp gmove out
  c [2:4] = mine [0:4];
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(c[i] == (i >= 2 && i < 6 ? 5 * (i - 2) : 0));
  const int on_gpu = acc_get_device_type() != acc_device_host;
#pragma acc enter data copyin(b)
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop present(b)
  for (int i = 0; i < N; i++) b[i] += 100;
#pragma xmp gmove acc(b)
  c[:] = b[:];
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(c[i] == i + 100);
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) c[i] = -i;
#pragma xmp gmove acc(b)
  b[:] = c[:];
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) b[i] = on_gpu ? 1 : b[i];
#pragma acc exit data copyout(b)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(b[i] == -i);
}

#pragma xmp nodes first(1) = p(1)
#pragma xmp template on_first(0 : N - 1)
#pragma xmp distribute on_first(block) onto first
#pragma xmp template dealt(0 : N - 1)
#pragma xmp distribute dealt(cyclic) onto p
static int f[N], plane[N][5], turned[5][N];
#pragma xmp align f[i] with on_first(i)
#pragma xmp align plane[i][*] with t(i)
#pragma xmp align turned[*][i] with dealt(i)
#pragma xmp shadow plane[1 : 0][0]

/* Only node 1 executes: it reads what all own, and writes to all; the others execute other code. */
static void by_one_node(void) {
  int got[5][N], element = 0;
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) {
    b[i] = i, c[i] = -1;
    for (int j = 0; j < 5; j++) plane[i][j] = 10 * i + j;
  }
#pragma xmp loop(i) on dealt(i)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < 5; j++) turned[j][i] = 100 * j + i;
#pragma xmp barrier
#pragma xmp task on p(1)
  {
#pragma xmp gmove in
    f[:] = b[:];
    for (int i = 0; i < N; i++) CHECK(f[i] == i);
#pragma xmp gmove in async(3)
    f [1:5:2] = b [10:5:-2];
#pragma xmp wait_async(3)
    for (int k = 0; k < 5; k++) CHECK(f[1 + 2 * k] == 10 - 2 * k && f[2 * k] == 2 * k);
#pragma xmp gmove in
    element = plane[N - 1][3];
    CHECK(element == 10 * (N - 1) + 3);
#pragma xmp gmove in
    f [2:3] = turned[4][N - 2];
    for (int i = 2; i < 5; i++) CHECK(f[i] == 400 + N - 2);
#pragma xmp gmove in
    got[:][:] = turned[:][:];
    for (int j = 0; j < 5; j++)
      for (int i = 0; i < N; i++) CHECK(got[j][i] == 100 * j + i);
    for (int i = 0; i < N; i++) f[i] = 7 * i;
#pragma xmp gmove out
    c [1:4:3] = f [2:4];
#pragma xmp gmove out
    plane [1:N / 2:2][2] = 6;
#pragma xmp gmove out
    turned [1:3] [0:N] = got [2:3][:];
  }
#pragma xmp barrier
  for (int k = 0; k < 2; k++) { /* a reflect of what another node wrote is never free */
#pragma xmp reflect(plane)
    const int below = xmp_node_num() > 1 ? N / xmp_num_nodes() * (xmp_node_num() - 1) - 1 : -1;
    if (below >= 0 && N % xmp_num_nodes() == 0)
      CHECK(plane[below][2] == (below % 2 ? 6 : 10 * below + 2) + k);
    if (k) break;
#pragma xmp barrier
#pragma xmp task on p(1)
    {
      int more[N];
#pragma xmp gmove in
      more[:] = plane[:][2];
      for (int i = 0; i < N; i++) more[i]++;
#pragma xmp gmove out
      plane[:][2] = more[:];
    }
#pragma xmp barrier
  }
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) {
    CHECK(c[i] == (i % 3 == 1 ? 7 * (2 + i / 3) : -1));
    for (int j = 0; j < 5; j++) CHECK(plane[i][j] == (j == 2 ? 1 + (i % 2 ? 6 : 10 * i + j) : 10 * i + j));
  }
#pragma xmp loop(i) on dealt(i)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < 5; j++) CHECK(turned[j][i] == (j > 0 && j < 4 ? 100 * (j + 1) : 100 * j) + i);
}

/* An array that each call allocates anew, when the last node is ready; and one that is also a parameter. */
static void of_a_call(int v[N], int call) {
#pragma xmp align v[i] with t(i)
  int fresh[N], last = -1;
#pragma xmp align fresh[i] with t(i)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) fresh[i] = call + i, v[i] = 0;
#pragma xmp barrier
#pragma xmp task on t(N - 1)
  {
#pragma xmp gmove in
    last = fresh[0];
    CHECK(last == call);
#pragma xmp gmove out
    v [0:N - 1] = last;
  }
#pragma xmp barrier
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(v[i] == (i < N - 1 ? call : 0));
}

static void broadcasts(void) {
  const int me = xmp_node_num(), nodes = xmp_num_nodes(), half = (nodes + 1) / 2;
  int value = me, pair[2] = {me, -me};
#pragma xmp bcast(value) on p(1 : half)
  CHECK(value == (me <= half ? 1 : me));
#pragma xmp bcast(pair) from p(half) on p(1 : half)
  CHECK(pair[0] == (me <= half ? half : me) && pair[1] == -pair[0]);
  value = me;
#pragma xmp bcast(value) from t(N - 1)
  int owner = 0;
#pragma xmp task on t(N - 1)
  owner = me;
#pragma xmp reduction(max : owner)
  CHECK(value == owner);
#pragma xmp barrier on p(1 : half)
#pragma xmp barrier
}

void between(void) {
  shadows();
  posts();
  moves();
  by_one_node();
  of_a_call(b, 1);
  of_a_call(c, 2);
  of_a_call(b, 3);
  broadcasts();
}
