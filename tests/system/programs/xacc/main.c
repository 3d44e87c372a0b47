/* All scenarios on as many processes as it is started with. Prints how many checks were made. */
#include "check.h"

static int set_ups;
static void set_up(void) { ++set_ups; }

int main(int argc, char** argv) {
  pwx_unit units[2] = {{.set_up = set_up}, {.set_up = set_up}};
  pwx_unit_add(&units[0]);
  pwx_unit_add(&units[1]);
  pwx_gmove_one_sided();
  pwx_begin(&argc, &argv);
  CHECK(set_ups == 2, "%d", set_ups);
  test_nodes();
  test_arrays();
  test_reflect();
  test_reflect_again();
  test_values();
  test_tasks();
  test_gmove();
  test_coarrays();
  pwx_reduce(NULL, PWX_SUM, PWX_INT, &failures, 1, HERE);
  pwx_reduce(NULL, PWX_SUM, PWX_INT, &checks, 1, HERE);
  if (rank() == 0) printf("%d checks, %d failed\n", checks, failures);
  return failures != 0;
}
