/* Posts that no node has waited for yet: many with one tag, many tags, and before other communication. */
#include <stdio.h>
#include <xmp.h>
#pragma xmp nodes p(*)
#define TAGS 200
#pragma xmp template t(0 : 15)
#pragma xmp distribute t(block) onto p
double u[16];
#pragma xmp align u[i] with t(i)
#pragma xmp shadow u[1]

/* Posts with more tags than fit at the receiver, while that node waits for this one in a reflect. */
static int reflect_between(int me, int next, int previous, int one_way, int first) {
  int wrong = 0;
#pragma xmp loop on t(i)
  for (int i = 0; i < 16; i++) u[i] = i + first;
  if (!one_way || me == 1) {
    for (int k = 0; k < TAGS; k++) {
#pragma xmp post(p(next), first + k)
#pragma xmp post(p(previous), first + TAGS + k)
    }
  }
#pragma xmp reflect(u)
#pragma xmp loop on t(i)
  for (int i = 1; i < 15; i++) wrong += u[i - 1] + u[i + 1] != 2 * u[i];
  for (int k = TAGS - 1; k >= 0; k--) {
    if (!one_way || previous == 1) {
#pragma xmp wait(p(previous), first + k)
    }
    if (!one_way || next == 1) {
#pragma xmp wait(p(next), first + TAGS + k)
    }
  }
  return wrong;
}

int main(void) {
  const int size = xmp_num_nodes(), me = xmp_node_num();
  const int next = me % size + 1, previous = (me + size - 2) % size + 1;
  int sum = 0;
  for (int k = 0; k < 1000; k++) {
#pragma xmp post(p(next), 7)
  }
#pragma xmp barrier
  for (int k = 0; k < 500; k++) {
#pragma xmp wait(p(previous), 7)
  }
  for (int k = 0; k < 500; k++) {
#pragma xmp wait
  }
  for (int k = 0; k < 300; k++) {
#pragma xmp post(p(next), k)
  }
  for (int k = 299; k >= 0; k--) {
#pragma xmp wait(p(previous), k)
  }
  for (int k = 300; k < 500; k++) { /* while the others are in a reduction */
    if (me == 1) {
#pragma xmp post(p(next), k)
    }
  }
  sum = me;
#pragma xmp reduction(+ : sum)
  if (previous == 1) {
    for (int k = 499; k >= 300; k--) {
#pragma xmp wait(p(previous), k)
    }
  }
#pragma xmp barrier
  int wrong = reflect_between(me, next, previous, 0, 1000);
  for (int round = 1; round < 5; round++) wrong += reflect_between(me, next, previous, 1, 1000 * (round + 1));
#pragma xmp reduction(+ : wrong)
  if (me == 1) printf("%d, %d wrong\n", sum, wrong);
  return 0;
}
