/* All scenarios, on the given number of processes. Prints the number of checks. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int set_ups;
static void set_up(void) { ++set_ups; }

/* A forked child is not a rank: its exit ends nothing, and communication with other ranks is an error. */
static void test_fork(void) {
  for (int talks = 0; talks < 2; ++talks) {
    const pid_t child = fork();
    if (child == 0) {
      if (talks && freopen("/dev/null", "w", stderr) != NULL) pwx_barrier(NULL, HERE);
      exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child, "%d", (int)child);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) != 0) == talks, "%#x", status);
  }
}

int main(int argc, char** argv) {
  pwx_unit units[2] = {{.set_up = set_up}, {.set_up = set_up}};
  pwx_unit_add(&units[0]);
  pwx_unit_add(&units[1]);
  pwx_gmove_one_sided();
  pwx_begin(&argc, &argv);
  CHECK(set_ups == 2, "%d", set_ups);
  test_nodes();
  test_fork();
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
