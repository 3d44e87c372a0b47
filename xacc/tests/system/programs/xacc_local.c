/* Arrays, templates and nodes of functions and blocks: their descriptors are zeros first, wherever they
 * are, each is ended once, and each keeps its own plans for the next call. */
#include <stdio.h>
#include <string.h>
#include <xmp.h>
#pragma xmp nodes all(*)
#pragma xmp template tt(0 : 31)
#pragma xmp distribute tt(block) onto all
static int wrong;
static void dirty(void) {
  volatile char s[8192];
  memset((char*)s, 0x5a, sizeof s);
}

/* The halo of an array of `n` elements, at a recursion depth of `depth`. */
static void smooth(int n, int depth, int add) {
#pragma xmp nodes p(*)
#pragma xmp template t(0 : n - 1)
#pragma xmp distribute t(block) onto p
  int a[n];
#pragma xmp align a[i] with t(i)
#pragma xmp shadow a[1]
#pragma xmp loop on t(i)
  for (int i = 0; i < n; i++) a[i] = i + add;
  if (depth > 0) smooth(n, depth - 1, add + 1);
#pragma xmp reflect(a)
#pragma xmp loop on t(i)
  for (int i = 1; i < n - 1; i++)
    if (a[i - 1] != i - 1 + add || a[i + 1] != i + 1 + add) wrong++;
}

/* The same on a GPU, where the array's copy ends with the call, too. */
static void smooth_on_gpu(int n, int depth, int add) {
#pragma xmp template t(0 : n - 1)
#pragma xmp distribute t(block) onto all
  int a[n];
#pragma xmp align a[i] with t(i)
#pragma xmp shadow a[1]
  int bad = 0;
#pragma acc data create(a)
  {
#pragma xmp loop on t(i)
#pragma acc parallel loop
    for (int i = 0; i < n; i++) a[i] = i + add;
    if (depth > 0) smooth_on_gpu(n, depth - 1, add + 1);
#pragma xmp reflect(a) acc
#pragma xmp loop on t(i) reduction(+ : bad)
#pragma acc parallel loop reduction(+ : bad)
    for (int i = 1; i < n - 1; i++) bad += a[i - 1] != i - 1 + add || a[i + 1] != i + 1 + add;
  }
  wrong += bad;
}

/* Shadows whose width happens to be 0. */
static void reach(int lower, int upper) {
  int a[32];
#pragma xmp align a[i] with tt(i)
#pragma xmp shadow a[lower : upper]
#pragma xmp loop on tt(i)
  for (int i = 0; i < 32; i++) a[i] = i;
#pragma xmp reflect(a) width(lower : upper)
#pragma xmp reflect(a)
#pragma xmp loop on tt(i)
  for (int i = lower; i < 32 - upper; i++)
    if (a[i - lower] != i - lower || a[i + upper] != i + upper) wrong++;
}

static int leave(int how) {
  if (how == 0) goto end;
  {
#pragma xmp nodes p(*)
    int g[64];
    for (int k = 0; k < 64; k++) g[k] = k == 0 ? 16 : 0;
#pragma xmp template t(0 : 15)
#pragma xmp distribute t(gblock(g)) onto p
    double a[16];
#pragma xmp align a[i] with t(i)
    if (how == 1) return 1;
    if (how == 2) goto end;
#pragma xmp loop on t(i)
    for (int i = 0; i < 16; i++) a[i] = 1;
  }
  if (how == 3) return 3;
end:
  return how;
}

static int jumped(int how) {
  int rounds = 0;
again:
  if (how == 0) goto end;
#pragma xmp nodes p(*)
#pragma xmp template t(0 : 15)
#pragma xmp distribute t(block) onto p
  int a[16];
#pragma xmp align a[i] with t(i)
#pragma xmp loop on t(i)
  for (int i = 0; i < 16; i++) a[i] = 1;
  if (rounds++ < 3) goto again;
end:
  return rounds;
}

static int two(void) {
  int s = 0;
#pragma xmp nodes p(2)
#pragma xmp barrier on p(1 : 1)
#pragma xmp reduction(+ : s) on p(1 : 2)
  return s;
}
static int members(int k) {
  int s = 1;
#pragma xmp nodes p(k)
#pragma xmp reduction(+ : s) on p( :)
  return s;
}
static void kept(int add) {
  static double a[32];
#pragma xmp align a[i] with tt(i)
#pragma xmp shadow a[1]
#pragma xmp loop on tt(i)
  for (int i = 0; i < 32; i++) a[i] += add;
#pragma xmp reflect(a)
}

int main(void) {
  int size = xmp_num_nodes(), me = xmp_node_num();
  for (int k = 0; k < 3; k++) {
    dirty();
    smooth(32, 0, 0);
    dirty();
    smooth(32 + k, k, 5);
    smooth_on_gpu(64, k, k);
    smooth_on_gpu(64, 0, k + 1);
    for (int how = 0; how < 5; how++) {
      dirty();
      if (leave(how) != how) wrong++;
    }
    dirty();
    if (jumped(0) != 0) wrong++;
    dirty();
    if (jumped(1) != 4) wrong++;
    for (int m = 1; m <= size; m++) {
      dirty();
      int s = members(m);
      if (s != (me <= m ? m : 1)) {
        wrong++;
      }
    }
    kept(k);
    reach(0, 0);
    reach(k, 0);
    reach(k % 2, 1);
    if (size > 1) two();
  }
  /* Only one node keeps other arrays than the rest. */
#pragma xmp task on all(1)
  {
    for (int n = 16; n < 32; n++) {
#pragma xmp nodes q(1) = *
#pragma xmp template t(0 : n - 1)
#pragma xmp distribute t(block) onto q
      int b[n];
#pragma xmp align b[i] with t(i)
    }
  }
  smooth(32, 2, 7);
  for (int n = 100; n < 110; n++) smooth(n, 0, 1);
  smooth(32, 2, 7);
#pragma xmp reduction(+ : wrong)
#pragma xmp task on all(1)
  printf("%d wrong\n", wrong);
  return 0;
}
