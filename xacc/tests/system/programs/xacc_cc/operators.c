/* Every operator of reductions of acc, of xmp loops and of xmp reduction; atomics in all forms; and
 * clauses that only say how iterations are distributed. */
#include <openacc.h>

#include "check.h"

#define N 24

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p
typedef struct {
  long sum, product, most, least, both, either, other, all, any;
} results;

/* Values with different bits, and factors whose product fits. */
static long value(int i) { return (1L << (i % 20)) | 1L << 40; }
static long factor(int i) { return i % 5 == 0 ? 3 : -1; }

static results sequential(void) {
  results r = {7, 2, -5, 1L << 50, ~0L, 1L << 45, 0x55, 1, 0};
  for (int i = 0; i < N; i++) {
    r.sum += value(i);
    r.product *= factor(i);
    r.most = value(i) > r.most ? value(i) : r.most;
    r.least = value(i) < r.least ? value(i) : r.least;
    r.both &= value(i);
    r.either |= value(i);
    r.other ^= value(i) + i;
    r.all = r.all && i < N - 1;
    r.any = r.any || i == N - 1;
  }
  return r;
}

static void same(results r) {
  const results s = sequential();
  CHECK(r.sum == s.sum && r.product == s.product && r.most == s.most && r.least == s.least);
  CHECK(r.both == s.both && r.either == s.either && r.other == s.other && r.all == s.all && r.any == s.any);
}

/* Functions of the file, which kernels need, too. */
#define BODY                                   \
  sum += value(i);                             \
  product *= factor(i);                        \
  most = value(i) > most ? value(i) : most;    \
  least = value(i) < least ? value(i) : least; \
  both &= value(i);                            \
  either |= value(i);                          \
  other ^= value(i) + i;                       \
  all = all && i < N - 1;                      \
  any = any || i == N - 1;
#define BEGIN                                                                                          \
  long sum = 7, product = 2, most = -5, least = 1L << 50, both = ~0L, either = 1L << 45, other = 0x55; \
  long all = 1, any = 0;
#define END ((results){sum, product, most, least, both, either, other, all, any})

static void of_acc(void) {
  BEGIN
#pragma acc parallel loop reduction(+ : sum) reduction(* : product) reduction(max : most) \
    reduction(min : least) reduction(& : both) reduction(| : either) reduction(^ : other) \
        reduction(&& : all) reduction(|| : any)
  for (int i = 0; i < N; i++) {
    BODY
  }
  same(END);
}

static void of_acc_in_a_block(void) {
  BEGIN
#pragma acc parallel loop gang reduction(+ : sum) reduction(* : product) reduction(max : most) \
    reduction(min : least) reduction(& : both) reduction(| : either) reduction(^ : other)      \
        reduction(&& : all) reduction(|| : any)
  for (int k = 0; k < 2; k++) {
#pragma acc loop vector reduction(+ : sum) reduction(* : product) reduction(max : most)   \
    reduction(min : least) reduction(& : both) reduction(| : either) reduction(^ : other) \
        reduction(&& : all) reduction(|| : any)
    for (int i = k * (N / 2); i < (k + 1) * (N / 2); i++) {
      BODY
    }
  }
  same(END);
}

static void of_loop(void) {
  BEGIN
#pragma xmp loop(i) on t(i) reduction(+ : sum) reduction(* : product) reduction(max : most) \
    reduction(min : least) reduction(& : both) reduction(| : either) reduction(^ : other)   \
        reduction(&& : all) reduction(|| : any)
  for (int i = 0; i < N; i++) {
    BODY
  }
  same(END);
}

static void of_loop_and_acc(void) {
  BEGIN
#pragma xmp loop(i) on t(i) reduction(+ : sum) reduction(* : product) reduction(max : most) \
    reduction(min : least) reduction(& : both) reduction(| : either) reduction(^ : other)   \
        reduction(&& : all) reduction(|| : any)
#pragma acc parallel loop reduction(+ : sum) reduction(* : product) reduction(max : most) \
    reduction(min : least) reduction(& : both) reduction(| : either) reduction(^ : other) \
        reduction(&& : all) reduction(|| : any)
  for (int i = 0; i < N; i++) {
    BODY
  }
  same(END);
}

static void of_nodes(void) {
  const int me = xmp_node_num(), nodes = xmp_num_nodes();
  long sum = me, minus = me, product = me == 1 ? 3 : -1, most = me, least = me, both = ~(1L << me);
  long either = 1L << me, other = 3L << me, all = me > 0, none = me > 1, any = me == nodes, never = 0;
#pragma xmp reduction(+ : sum)
#pragma xmp reduction(- : minus)
#pragma xmp reduction(* : product)
#pragma xmp reduction(max : most)
#pragma xmp reduction(min : least)
#pragma xmp reduction(& : both)
#pragma xmp reduction(| : either)
#pragma xmp reduction(^ : other)
#pragma xmp reduction(&& : all, none)
#pragma xmp reduction(|| : any, never)
  long with_or = 0, with_xor = 0;
  for (int k = 1; k <= nodes; k++) with_or |= 1L << k, with_xor ^= 3L << k;
  CHECK(sum == nodes * (nodes + 1) / 2 && minus == sum && product == (nodes % 2 ? 3 : -3));
  CHECK(most == nodes && least == 1 && both == ~with_or && either == with_or && other == with_xor);
  CHECK(all == 1 && none == 0 && any == 1 && never == 0);
  long taken = 100;
#pragma xmp loop(i) on t(i) reduction(- : taken)
  for (int i = 0; i < N; i++) taken -= i;
  CHECK(taken == 100 - N * (N - 1) / 2);
}

/* The location of an extreme value, first and last. */
static void locations(void) {
  int highest = -1, lowest = 99, at_last = -1, at_first = -1;
#pragma xmp loop(i) on t(i) reduction(lastmax : highest / at_last /)
  for (int i = 0; i < N; i++)
    if (i % 4 >= highest) highest = i % 4, at_last = i;
#pragma xmp loop(i) on t(i) reduction(firstmin : lowest / at_first /)
  for (int i = 0; i < N; i++)
    if (i % 4 < lowest) lowest = i % 4, at_first = i;
  CHECK(highest == 3 && at_last == N - 1 && lowest == 0 && at_first == 0);
}

static void atomics(void) {
  int count = 0, last = -1, order[N], seen[N] = {0}, swapped[N], token = N;
  double total = 0;
#pragma acc data copy(count, last, total, token, seen) copyout(order, swapped)
  {
#pragma acc parallel loop
    for (int i = 0; i < N; i++) {
      int mine, before;
#pragma acc atomic capture
      mine = count++;
      order[i] = mine;
#pragma acc atomic write
      last = 5;
#pragma acc atomic update
      total = total + 0.5;
#pragma acc atomic
      seen[i / 2]++;
#pragma acc atomic capture
      {
        before = token;
        token = i;
      }
      swapped[i] = before;
    }
#pragma acc parallel loop
    for (int i = 0; i < N; i++) {
      int read;
#pragma acc atomic read
      read = last;
      if (read != 5) order[i] = N;
    }
  }
  int once[N + 1] = {0}, used[N + 1] = {0};
  for (int i = 0; i < N; i++) once[order[i]]++, used[swapped[i]]++;
  for (int i = 0; i < N; i++) CHECK(seen[i] == (i < N / 2 ? 2 : 0));
  used[token]++;
  for (int i = 0; i < N; i++) CHECK(once[i] == 1 && used[i] == 1);
  CHECK(used[N] == 1 && count == N && last == 5 && total == N / 2);
}

/* Sizes of gangs, workers and vectors, tiles and caches do not change the result. */
#pragma acc routine seq
static int doubled(int i) { return 2 * i; }

static void hints(int gangs) {
  int out[N], grid[N][4], sum = 0;
#pragma acc parallel loop num_gangs(gangs) num_workers(2) vector_length(32) copyout(out) reduction(+ : sum)
  for (int i = 0; i < N; i++) out[i] = i, sum += 1;
  CHECK(sum == N && out[N - 1] == N - 1);
#pragma acc parallel num_gangs(2) copyout(grid)
  {
#pragma acc loop gang(static : 1) worker
    for (int i = 0; i < N; i++) {
#pragma acc loop vector
      for (int j = 0; j < 4; j++) grid[i][j] = doubled(i) + j;
    }
  }
#pragma acc parallel loop tile(4, 2) num_gangs(3) copy(grid)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < 4; j++) {
#pragma acc cache(grid[i : 1][0 : 4])
      grid[i][j] += 1;
    }
  for (int i = 0; i < N; i++) CHECK(grid[i][0] == 2 * i + 1 && grid[i][3] == 2 * i + 4);
#pragma acc kernels loop gang(4) worker(2) vector(32) independent copyout(out)
  for (int i = 0; i < N; i++) out[i] = -i;
  CHECK(out[5] == -5);
  out[0] = 1;
#pragma acc parallel loop auto copy(out)
  for (int i = 1; i < N; i++) out[i] = out[i - 1] + i; /* nothing says that the iterations are independent */
  CHECK(out[N - 1] == 1 + N * (N - 1) / 2);
#pragma acc kernels copyout(grid)
  {
#pragma acc loop independent
    for (int i = 0; i < N; i++) {
      grid[i][0] = i;
#pragma acc loop
      for (int j = 1; j < 4; j++) grid[i][j] = grid[i][j - 1] + 1;
    }
  }
  for (int i = 0; i < N; i++) CHECK(grid[i][3] == i + 3);
#pragma acc parallel loop copy(grid)
  for (int i = 0; i < N; i++)
#pragma acc loop auto
    for (int j = 1; j < 4; j++) grid[i][j] = grid[i][j - 1] + 2;
  for (int i = 0; i < N; i++) CHECK(grid[i][3] == i + 6);
#pragma acc serial loop copy(out)
  for (int i = 1; i < N; i++) out[i] = out[i - 1] + 1;
  CHECK(out[N - 1] == N);
#pragma acc serial copy(out)
  {
    out[0] = 2;
    for (int i = 1; i < N; i++) out[i] = out[i - 1] + 1;
  }
  CHECK(out[N - 1] == N + 1);
#pragma acc kernels copy(out)
  for (int i = 1; i < N; i++) out[i] = out[i - 1] + 2;
  CHECK(out[N - 1] == 2 * N);
}

void operators(void) {
  of_acc();
  of_acc_in_a_block();
  of_loop();
  of_loop_and_acc();
  of_nodes();
  locations();
  atomics();
  hints(2);
}
