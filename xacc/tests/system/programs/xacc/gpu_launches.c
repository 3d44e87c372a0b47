/* The launches and copies that directives cause, as the simulated driver counts them. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "gpu.h"

/* How often a function of the driver was called so far; only the simulated driver counts. */
static int (*count)(const char* function);
static void find_count(void) {
  void* driver = dlopen(getenv("PEERWAY_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  if (driver != NULL) *(void**)&count = dlsym(driver, "fake_cuda_calls");
  CHECK(getenv("PEERWAY_CUDA_LIBRARY") == NULL || driver == NULL || count != NULL,
        "the double counts no calls");
}
static int calls(const char* function) { return count == NULL ? 0 : count(function); }
static int launches(void) { return calls("cuLaunchKernelEx"); }
#define CHECK_COUNT(right, ...) CHECK(count == NULL || (right), __VA_ARGS__)

/* What follows the first work is recorded until a barrier comes. */
void test_gpu_first_launch(void) {
  static const unsigned sizes[] = {sizeof(int*)};
  static pwx_kernel increment = {
      .name = "one", .source = "extern \"C\" __global__ void one(int* x) { *x += 1; }\n", .sizes = sizes};
  static pwx_sequence around;
  find_count();
  int* at = acc_malloc(sizeof *at);
  int x = 0;
  acc_memcpy_to_device(at, &x, sizeof x);
  const int before = launches();
  pwx_sequence_begin();
  for (int time = 0; time < 2; ++time) {
    pwx_launch(&increment, &(pwx_shape){{1, 1, 1}, 1, 1, 0, 0}, (void*[]){&at}, 1, 0, NULL, PWX_QUEUE_SYNC,
               HERE);
    CHECK_COUNT(launches() - before == 1, "time %d: %d launches, not that of the first alone", time,
                launches() - before);
  }
  pwx_barrier(NULL, HERE);
  CHECK_COUNT(launches() - before == 2, "%d launches before a barrier", launches() - before);
  pwx_sequence_end(&around, HERE);
  acc_memcpy_from_device(&x, at, sizeof x);
  CHECK(x == 2, "%d", x);
  acc_free(at);
}

/* Ranks that map each other's memory exchange values within the kernel that combines them. */
static void reduction(void) {
  float value = (float)rank();
  float* at = acc_copyin(&value, sizeof value);
  for (int time = 0; time < 4; ++time) {
    const int before = launches(), copies = calls("cuMemcpyAsync");
    pwx_reduce_device(NULL, time % 2 ? PWX_MAX : PWX_SUM, PWX_FLOAT, at, 1, HERE);
    if (time == 0) continue; /* the first call prepares */
    CHECK_COUNT(launches() - before == 1, "%d launches", launches() - before);
    CHECK_COUNT(calls("cuMemcpyAsync") == copies, "%d copies", calls("cuMemcpyAsync") - copies);
  }
  acc_copyout(&value, sizeof value);
  const int sum = size() * (size() - 1) / 2;
  CHECK(value == (float)(sum * size()), "%g, not %d", (double)value, sum * size()); /* sum, max, sum, max */
}

static void reflects(void) {
  static pwx_nodes p;
  static pwx_template t;
  static pwx_array a;
  static pwx_halo halo, same, split;
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
    CHECK_COUNT(launches() - before == 1, "%d launches of a reflect", launches() - before);
    pwx_written(&a);
    const int tables = calls("cuMemAlloc_v2");
    CHECK_COUNT(tables > 0, "no plan has a table");
    pwx_reflect(&same, 1, list, width, PWX_REFLECT_ACC, HERE);
    CHECK_COUNT(calls("cuMemAlloc_v2") == tables, "a plan for each directive");
    CHECK_COUNT(launches() - before == 2, "%d launches of two reflects", launches() - before);
    pwx_written(&a);
    before = launches();
    int waits = calls("cuStreamWaitEvent");
    pwx_reflect_start(&split, 1, list, width, PWX_REFLECT_ACC, HERE);
    CHECK_COUNT(calls("cuStreamWaitEvent") - waits == 1,
                "the halo's queue does not wait for the kernels before");
    waits = calls("cuStreamWaitEvent");
    pwx_reflect_wait(1, list, HERE);
    CHECK_COUNT(launches() - before == 2, "%d launches of one that is split", launches() - before);
    CHECK_COUNT(calls("cuStreamWaitEvent") - waits == 1, "what follows does not wait for what was sent");
  }
  pwx_exit_data(1, &data, 0, PWX_QUEUE_SYNC, HERE);
  pwx_array_free(&a);
}

/* Two kernels and a reflect. The first is launched at once; the others are recorded, then captured, and
 * then one launch of a graph, whenever the arguments are those of a graph. */
static pwx_array a;
static void sequence(double* x, double by) {
  static const unsigned sizes[] = {sizeof x, sizeof by, sizeof(short)};
  static pwx_kernel times = {
      .name = "times",
      .source =
          "extern \"C\" __global__ void times(double* x, const double by, const short n) {\n"
          "  if (blockIdx.x == 0 && threadIdx.x == 0)\n"
          "    for (int i = 0; i < n; ++i) x[i] = x[i] * by + 1;\n}\n",
      .sizes = sizes};
  static pwx_sequence around;
  static pwx_halo halo;
  pwx_array* const list[] = {&a};
  const pwx_shape shape = {{1, 1, 1}, 1, 1, 0, 0};
  short n = 3;
  void* arguments[] = {&x, &by, &n};
  pwx_sequence_begin();
  pwx_launch(&times, &shape, arguments, 3, 0, NULL, PWX_QUEUE_SYNC, HERE);
  pwx_sequence_begin(); /* in a function that is called there */
  pwx_written(&a);
  pwx_reflect(&halo, 1, list, (pwx_width[]){{1, 1, 1}}, PWX_REFLECT_ACC, HERE);
  pwx_sequence_end(NULL, HERE);
  pwx_launch(&times, &shape, arguments, 3, 0, NULL, PWX_QUEUE_SYNC, HERE);
  x = NULL, by = 0, n = 0; /* the arguments were copied */
  pwx_sequence_end(&around, HERE);
}

static void sequences(void) {
  static pwx_nodes p;
  static pwx_template t;
  line_of_all(&p);
  blocks(&t, &p, (long[]){40});
  line(&a, &t, 40, 0, 1, 1);
  const pwx_data data = {PWX_DATA_COPYIN, "a", &a, NULL, 0};
  pwx_enter_data(1, &data, PWX_QUEUE_SYNC, HERE);
  double x[3] = {0, 1, 2}, right[3] = {0, 1, 2};
  double* at = acc_copyin(x, sizeof x);
  const struct {
    double by;
    int launches, graphs;
  } times[] = {{1, 3, 0}, {1, 3, 1}, {1, 1, 1}, {1, 1, 1}, {2, 3, 0}, {1, 1, 1}, {2, 3, 1}, {2, 1, 1}};
  for (int time = 0; time < 8; ++time) {
    const int launched = launches(), graphs = calls("cuGraphLaunch");
    const double by = times[time].by;
    sequence(at, by);
    CHECK_COUNT(launches() - launched == times[time].launches, "time %d: %d", time, launches() - launched);
    CHECK_COUNT(calls("cuGraphLaunch") - graphs == times[time].graphs, "time %d: no graph, or one", time);
    acc_update_self(x, sizeof x);
    for (int i = 0; i < 3; ++i) {
      right[i] = (right[i] * by + 1) * by + 1;
      CHECK(x[i] == right[i], "time %d: %g, not %g", time, x[i], right[i]);
    }
  }
  acc_delete(x, sizeof x);
  pwx_exit_data(1, &data, 0, PWX_QUEUE_SYNC, HERE); /* the plan ends, and with it the graphs */
  pwx_enter_data(1, &data, PWX_QUEUE_SYNC, HERE);
  at = acc_copyin(x, sizeof x);
  const int graphs = calls("cuGraphLaunch");
  sequence(at, 1);
  CHECK_COUNT(calls("cuGraphLaunch") == graphs, "a graph with a plan that has ended");
  acc_delete(x, sizeof x);
  pwx_exit_data(1, &data, 0, PWX_QUEUE_SYNC, HERE);
  pwx_array_free(&a);
}

/* A wait inside a sequence sees what was recorded before it. */
static void wait_within(void) {
  static const unsigned sizes[] = {sizeof(int*), sizeof(int)};
  static pwx_kernel set = {.name = "set",
                           .source = "extern \"C\" __global__ void set(int* x, const int to) { *x = to; }\n",
                           .sizes = sizes};
  static pwx_sequence around;
  int x = 0;
  int* at = acc_copyin(&x, sizeof x);
  const pwx_shape shape = {{1, 1, 1}, 1, 1, 0, 0};
  for (int time = 1; time < 4; ++time) {
    pwx_sequence_begin();
    pwx_launch(&set, &shape, (void*[]){&at, &time}, 2, 0, NULL, PWX_QUEUE_SYNC, HERE);
    acc_update_self(&x, sizeof x);
    CHECK(x == time, "%d, not %d", x, time);
    pwx_launch(&set, &shape, (void*[]){&at, &(int){-time}}, 2, 0, NULL, PWX_QUEUE_SYNC, HERE);
    pwx_sequence_end(&around, HERE);
    acc_update_self(&x, sizeof x);
    CHECK(x == -time, "%d, not %d", x, -time);
  }
  acc_delete(&x, sizeof x);
}

void test_gpu_launches(void) {
  if (getenv("PEERWAY_PATHS") != NULL) return; /* other paths have other steps */
  reflects();
  sequences();
  wait_within();
  if (size() > 1) reduction();
}
