/* Copies on a GPU made by another OpenACC run-time library; acc_malloc takes its part here. */
#include "peerway/xacc/outside.h"

#include "check.h"
#include "peerway/xacc/openacc.h"

enum { ROWS = 12, COLUMNS = 9 };

static void* copy_of(const pwx_array* a) {
  void* const device = acc_malloc(pwx_memory_bytes(a));
  acc_memcpy_to_device(device, pwx_memory(a), pwx_memory_bytes(a));
  return device;
}

static void fill(const pwx_array* a, double add) {
  for (long i = a->dim[0].first; i <= a->dim[0].last; ++i)
    for (long j = a->dim[1].first; j <= a->dim[1].last; ++j)
      *at2(a, i, j) = add + 100.0 * (double)i + (double)j;
}

int main(int argc, char** argv) {
  pwx_begin(&argc, &argv);
  static pwx_nodes p;
  static pwx_template t;
  static pwx_array a;
  static pwx_halo halo;
  grid_of_all(&p);
  blocks(&t, &p, (long[]){COLUMNS, ROWS});
  plane(&a, &t, ROWS, COLUMNS, 1, 1);
  pwx_array* const list[] = {&a};
  CHECK(pwx_outside(&a, pwx_memory(&a), HERE) == 0, "memory that is shared");
  if (argc > 1) pwx_outside(&a, NULL, &(pwx_where){"prog.c", 3});
  for (int time = 0; time < 3; ++time) { /* twice with one copy, then with another */
    static void* device;
    fill(&a, time);
    if (time != 1) device = copy_of(&a);
    acc_memcpy_to_device(device, pwx_memory(&a), pwx_memory_bytes(&a));
    CHECK(pwx_moved(&a, at2(&a, a.dim[0].first, a.dim[1].first), device) != NULL, "an element");
    pwx_reflect(&halo, 1, list, NULL, pwx_outside(&a, device, HERE), HERE);
    acc_memcpy_from_device(pwx_memory(&a), device, pwx_memory_bytes(&a));
    for (long i = a.dim[0].first - 1; i <= a.dim[0].last + 1; ++i)
      for (long j = a.dim[1].first - 1; j <= a.dim[1].last + 1; ++j)
        if (i >= 0 && i < ROWS && j >= 0 && j < COLUMNS)
          CHECK(*at2(&a, i, j) == time + 100.0 * (double)i + (double)j, "%ld, %ld: %g", i, j, *at2(&a, i, j));
  }
  pwx_reduce(NULL, PWX_SUM, PWX_INT, &failures, 1, HERE);
  pwx_reduce(NULL, PWX_SUM, PWX_INT, &checks, 1, HERE);
  if (rank() == 0) printf("%d checks, %d failed\n", checks, failures);
  return failures != 0;
}
