/* Measures a call of a function that has a distributed array of its own: two loops, with a reflect between
 * them. The array is on the GPU if there is one. Prints a record; exits with 1 if a value is wrong. */
#include <openacc.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmp.h>

#ifndef BATCHES
#define BATCHES 50
#endif
#ifndef CALLS
#define CALLS 100
#endif
#ifndef N
#define N 1024
#endif

#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[block] onto p

static int smooth(int add) {
  int a[N], wrong = 0;
#pragma xmp align a[i] with t[i]
#pragma xmp shadow a[1]
#pragma acc data create(a)
  {
#pragma xmp loop on t[i]
#pragma acc parallel loop
    for (int i = 0; i < N; i++) a[i] = i + add;
#pragma xmp reflect(a) acc
#pragma xmp loop on t[i]
#pragma acc parallel loop reduction(+ : wrong)
    for (int i = 1; i < N - 1; i++) wrong += a[i - 1] + a[i + 1] != 2 * (i + add);
  }
  return wrong;
}

static int by_size(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

int main(void) {
  double times[BATCHES];
  int wrong = smooth(0);
  for (int batch = 0; batch < BATCHES; batch++) {
    xmp_sync_all(NULL);
    const double start = xmp_wtime();
    for (int call = 0; call < CALLS; call++) wrong += smooth(call);
    times[batch] = (xmp_wtime() - start) / CALLS * 1e6;
  }
  qsort(times, BATCHES, sizeof times[0], by_size);
#pragma xmp reduction(+ : wrong)
  const char* device = acc_get_device_type() == acc_device_host ? "CPU" : "GPU";
#pragma xmp task on p[0]
  {
    printf(
        "{\"test\": \"local_array\", \"operation\": \"call with two loops and a reflect\", \"ranks\": %d, ",
        xmp_all_num_nodes());
    printf("\"device\": \"%s\", \"elements\": %d, \"p50_us\": %.3f, \"min_us\": %.3f, \"max_us\": %.3f, ",
           device, N, times[BATCHES / 2], times[0], times[BATCHES - 1]);
    printf("\"batches\": %d, \"iterations\": %d, \"right\": %s}\n", BATCHES, CALLS, wrong ? "false" : "true");
  }
  return wrong != 0;
}
