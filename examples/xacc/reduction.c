/* Measures a reduction of a value that stays on the GPUs: one by one, and ten in a sequence, which is one
 * launch of a CUDA graph. Prints one record per line; exits with 1 if a value is wrong. */
#include <openacc.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmp.h>

#ifndef BATCHES
#define BATCHES 50
#endif
enum { TIMES = 200, TOGETHER = 10 };

#pragma xmp nodes p[*]
static double value;

static void one_by_one(void) {
  for (int i = 0; i < TIMES; i++) {
#pragma xmp reduction(max : value) acc
  }
}

static void together(void) {
  for (int i = 0; i < TIMES / TOGETHER; i++) {
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
#pragma xmp reduction(max : value) acc
  }
}

static const char* loops_run_on(void) {
#ifdef _OPENACC
  return acc_get_device_type() == acc_device_host ? "CPU" : "GPU";
#else
  return "CPU";
#endif
}

static int by_size(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

/* The median of some batches, in microseconds per reduction; returns 1 if the value is wrong. */
static int measure(const char* how, void (*part)(void)) {
  double times[BATCHES];
  value = xmp_node_num();
#pragma acc update device(value)
  part();
  for (int batch = 0; batch < BATCHES; batch++) {
#pragma acc wait
    xmp_sync_all(NULL);
    const double start = xmp_wtime();
    part();
#pragma acc wait
    times[batch] = (xmp_wtime() - start) / TIMES * 1e6;
  }
#pragma acc update self(value)
  const int wrong = value != xmp_all_num_nodes();
  qsort(times, BATCHES, sizeof times[0], by_size);
#pragma xmp task on p[0]
  {
    printf("{\"test\": \"reduction\", \"operation\": \"max of a double on the device\", \"how\": \"%s\", ",
           how);
    printf("\"ranks\": %d, \"device\": \"%s\", ", xmp_all_num_nodes(), loops_run_on());
    printf("\"p50_us\": %.3f, \"min_us\": %.3f, \"max_us\": %.3f, ", times[BATCHES / 2], times[0],
           times[BATCHES - 1]);
    printf("\"batches\": %d, \"iterations\": %d, \"right\": %s}\n", BATCHES, TIMES, wrong ? "false" : "true");
  }
  return wrong;
}

int main(void) {
#pragma acc enter data create(value)
  int wrong = measure("one by one", one_by_one) + measure("ten in a sequence", together);
#pragma acc exit data delete(value)
  return wrong != 0;
}
