/* Runs all parts on the given number of nodes, and says whether every check passed on every node. */
#include "check.h"

#pragma xmp nodes p(*)

int wrong;

int main(void) {
  mapping();
  communication();
  compute();
  clauses();
  if (own_of_threads) own_of_threads();
  data();
  operators();
  between();
  declarators();
  intrinsics();
  if (gmoves) gmoves();
  if (newer) newer();
  if (data_newer) data_newer();
#pragma xmp reduction(+ : wrong)
#pragma xmp task on p(1)
  printf("%d nodes, %d wrong\n", xmp_all_num_nodes(), wrong);
  return wrong != 0;
}
