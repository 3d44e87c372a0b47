/* How many launches and copies directives take, as the double of the driver counts them. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "gpu.h"

/* How often a function of the driver was called so far. A driver that is none of doubles does not count. */
static int (*calls)(const char* function);
static int counts(void) {
  void* driver = dlopen(getenv("PEERWAY_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  if (driver != NULL) *(void**)&calls = dlsym(driver, "fake_cuda_calls");
  return calls != NULL;
}
static int launches(void) { return calls("cuLaunchKernelEx"); }

/* Ranks that map each other's memory exchange values within the kernel that joins them. */
static void reduction(void) {
  float value = (float)rank();
  float* at = acc_copyin(&value, sizeof value);
  for (int time = 0; time < 4; ++time) {
    const int before = launches(), copies = calls("cuMemcpyAsync");
    pwx_reduce_device(NULL, time % 2 ? PWX_MAX : PWX_SUM, PWX_FLOAT, at, 1, HERE);
    if (time == 0) continue; /* it prepares */
    CHECK(launches() - before == 1, "%d launches", launches() - before);
    CHECK(calls("cuMemcpyAsync") == copies, "%d copies", calls("cuMemcpyAsync") - copies);
  }
  acc_copyout(&value, sizeof value);
  const int sum = size() * (size() - 1) / 2;
  CHECK(value == (float)(sum * size()), "%g, not %d", (double)value, sum * size()); /* sum, max, sum, max */
}

static void reflects(void) {
  static pwx_nodes p;
  static pwx_template t;
  static pwx_array a;
  static pwx_halo halo, split;
  line_of_all(&p);
  blocks(&t, &p, (long[]){40});
  line(&a, &t, 40, 0, 1, 1);
  pwx_array* const list[] = {&a};
  const pwx_width width[] = {{1, 1, 1}};
  const pwx_data data = {PWX_DATA_COPYIN, "a", &a, NULL, 0};
  pwx_enter_data(1, &data, PWX_QUEUE_SYNC, HERE);
  for (int time = 0; time < 3; ++time) {
    pwx_written(&a);
    int before = launches();
    pwx_reflect(&halo, 1, list, width, PWX_REFLECT_ACC, HERE);
    CHECK(launches() - before == 1, "%d launches of a reflect", launches() - before);
    pwx_written(&a);
    before = launches();
    int waits = calls("cuStreamWaitEvent");
    pwx_reflect_start(&split, 1, list, width, PWX_REFLECT_ACC, HERE);
    CHECK(calls("cuStreamWaitEvent") - waits == 1, "the halo's queue does not wait for the kernels before");
    waits = calls("cuStreamWaitEvent");
    pwx_reflect_wait(1, list, HERE);
    CHECK(launches() - before == 2, "%d launches of one that is split", launches() - before);
    CHECK(calls("cuStreamWaitEvent") - waits == 1, "what follows does not wait for what was sent");
  }
  pwx_exit_data(1, &data, 0, PWX_QUEUE_SYNC, HERE);
  pwx_array_free(&a);
}

void test_gpu_launches(void) {
  if (!counts() || getenv("PEERWAY_PATHS") != NULL) return; /* other paths take other steps */
  reflects();
  if (size() > 1) reduction();
}
