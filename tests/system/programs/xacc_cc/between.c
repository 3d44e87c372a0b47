/* What nodes tell one another by rarer directives: reduce_shadow, post and wait, coarrays by a directive,
 * gmove in and out and with acc of one side, bcast with on and from. */
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

/* Every node adds 1 to its elements and to both neighbours of each; halos are added where they belong. */
static void shadows(void) {
#pragma xmp loop(i) on t(i) expand(1)
  for (int i = 0; i < N; i++) a[i] = 0;
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) {
    a[i] += 1;
    if (i > 0) a[i - 1] += 1;
    if (i < N - 1) a[i + 1] += 1;
  }
#pragma xmp reduce_shadow(a)
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < N; i++) CHECK(a[i] == 3 - (i == 0) - (i == N - 1));
}

/* A ring: each node puts to the next one, posts, and waits for the one before. */
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
  broadcasts();
}
