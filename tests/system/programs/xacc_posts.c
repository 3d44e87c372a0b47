/* Posts that nobody has waited for yet: many of one tag, of many tags, and before other communication. */
#include <stdio.h>
#include <xmp.h>
#pragma xmp nodes p(*)
int main(void) {
  const int size = xmp_num_nodes(), me = xmp_node_num();
  const int right = me % size + 1, left = (me + size - 2) % size + 1;
  int sum = 0;
  for (int k = 0; k < 1000; k++) {
#pragma xmp post(p(right), 7)
  }
#pragma xmp barrier
  for (int k = 0; k < 500; k++) {
#pragma xmp wait(p(left), 7)
  }
  for (int k = 0; k < 500; k++) {
#pragma xmp wait
  }
  for (int k = 0; k < 300; k++) {
#pragma xmp post(p(right), k)
  }
  for (int k = 299; k >= 0; k--) {
#pragma xmp wait(p(left), k)
  }
  for (int k = 300; k < 500; k++) { /* while the others are in a reduction */
    if (me == 1) {
#pragma xmp post(p(right), k)
    }
  }
  sum = me;
#pragma xmp reduction(+ : sum)
  if (left == 1) {
    for (int k = 499; k >= 300; k--) {
#pragma xmp wait(p(left), k)
    }
  }
#pragma xmp barrier
  if (me == 1) printf("%d\n", sum);
  return 0;
}
