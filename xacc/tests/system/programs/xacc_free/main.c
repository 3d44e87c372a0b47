/* A reflect of an array that nothing wrote does nothing; one that something may have written is reflected.
 * Halos are spoiled where the compiler cannot see it: a reflect that does nothing leaves them so. */
#include <stdio.h>
#include <xmp.h>

#include "spoil.h"

#define N 16
#pragma xmp nodes p(NODES)
#pragma xmp nodes first(1) = p(1)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p
static double a[N], b[N], kept[N], rows[N][4], *address;
#pragma xmp align[i] with t(i)::a, b, kept
#pragma xmp shadow[1 : 1] ::a, b, kept
#pragma xmp align rows[i][*] with t(i)
#pragma xmp shadow rows[2 : 2][0]

static int wrong, own, last;

static void spoil_a(void) {
  if (last < N - 1) spoil(&a[last + 1]);
}

static void expect(int line, double actual, double wanted) {
  if (last == N - 1 || actual == wanted) return;
  wrong++;
  fprintf(stderr, "main.c:%d: %g, not %g\n", line, actual, wanted);
}

static void fill(double v[N], double add) {
#pragma xmp align v[i] with t(i)
#pragma xmp shadow v[1 : 1]
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) v[i] = i + add;
}

static double sum(double v[N]) {
#pragma xmp align v[i] with t(i)
#pragma xmp shadow v[1 : 1]
  double all = 0;
#pragma xmp loop on t(i) reduction(+ : all)
  for (int i = 0; i < N; i++) all += v[i];
  return all;
}

static void reflect(double v[N]) {
#pragma xmp align v[i] with t(i)
#pragma xmp shadow v[1 : 1]
#pragma xmp reflect(v)
}

#define CHECK(element, value) expect(__LINE__, last < N - 1 ? element : 0, value)
#define NEXT (last + 1)

int main(void) {
  own = (N + xmp_num_nodes() - 1) / xmp_num_nodes();
  last = own * xmp_node_num() - 1;
  fill(a, 0);
#pragma xmp reflect(a)
  CHECK(a[NEXT], NEXT);
  spoil_a();
#pragma xmp reflect(a)
  CHECK(a[NEXT], -1); /* free */
  reflect(a);
  CHECK(a[NEXT], -1); /* at any line of the text */
  if (sum(a) < 0) wrong++;
#pragma xmp reflect(a) width(/ periodic / 1 : 1)
  CHECK(a[NEXT], NEXT); /* asks for more */
  spoil_a();
#pragma xmp reflect(a) width(/ periodic / 0 : 1)
  CHECK(a[NEXT], -1); /* asks for less */
  fill(a, 1);
#pragma xmp reflect(a) width(/ periodic / 0 : 1)
  CHECK(a[NEXT], NEXT + 1);
  for (int k = 0; k < 3; k++) {
    spoil_a();
    reflect(a);
    CHECK(a[NEXT], k == 0 || k == 2 ? NEXT + 1 + k / 2 : -1); /* 0: another width; 1: free; 2: filled */
    if (k == 1) fill(a, 2);
  }
  if (last == own - 1) a[0] = 100; /* only on one node */
  spoil_a();
#pragma xmp reflect(a)
  CHECK(a[NEXT], NEXT + 2);
  spoil_a();
#pragma xmp task on first(1)
  {
    a[1] = 7;
  }
#pragma xmp reflect(a)
  CHECK(a[NEXT], NEXT + 2);
  spoil_a();
#pragma xmp task on first(1)
  {
    fprintf(stderr, "%s", "");
  }
#pragma xmp reflect(a)
  CHECK(a[NEXT], -1);
#pragma xmp gmove
  a [0:N] = b [0:N];
#pragma xmp reflect(a)
  CHECK(a[NEXT], 0);
  spoil_a();
#pragma xmp reflect_init(a)
#pragma xmp reflect_do(a)
  CHECK(a[NEXT], -1);
#pragma xmp array on t( :)
  a [0:N] = 3;
#pragma xmp reflect(a) async(1)
#pragma xmp wait_async(1)
  CHECK(a[NEXT], 3);
  spoil_a();
#pragma xmp reflect(a) nowait
#pragma xmp reflect_wait(a)
  CHECK(a[NEXT], -1);
#pragma xmp reflect(a, b)
  CHECK(a[NEXT], -1); /* only b */
  CHECK(b[NEXT], 0);
  spoil(&b[last < N - 1 ? NEXT : last]);
#pragma xmp reflect(a, b)
  CHECK(a[NEXT], -1);
  CHECK(b[NEXT], -1);
  /* Adjacent directives, of arrays with ranks and widths of their own. */
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) rows[i][2] = b[i] = a[i] = 10 + i;
  if (last < N - 1) spoil(&a[NEXT]), spoil(&b[NEXT]), spoil(&rows[NEXT][2]);
#pragma xmp reflect(a)
#pragma xmp reflect(rows) width(0 : 2, 0)
#pragma xmp reflect(b) width(1 : 0)
  CHECK(a[NEXT], 10 + NEXT);
  CHECK(rows[NEXT][2], 10 + NEXT);
  CHECK(b[NEXT], -1); /* no layer above */
  /* An array whose address is kept always counts as written. */
  address = &kept[last];
  fill(kept, 0);
#pragma xmp reflect(kept)
  *address = 50;
#pragma xmp reflect(kept)
  if (last >= own) {
    if (kept[last - own] != 50) wrong++;
  }
#pragma xmp reduction(+ : wrong)
#pragma xmp task on first(1)
  {
    printf("%d wrong\n", wrong);
  }
  return wrong != 0;
}
