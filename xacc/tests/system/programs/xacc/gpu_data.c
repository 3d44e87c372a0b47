/* The data clauses: the data on the host and on the GPU after each. Kernels multiply and set. */
#include "gpu.h"

enum { N = 1000 };
static double x[N], y[N];

static void times(double factor, double* device, long count, long queue) {
  static pwx_kernel kernel = {.name = "times",
                              .source =
                                  "extern \"C\" __global__ void times(double factor, double* a, long n) {\n"
                                  "  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n;\n"
                                  "       i += (long)gridDim.x * blockDim.x) a[i] *= factor;\n}\n"};
  const pwx_shape shape = {{count, 1, 1}, 0, 0, 0, 0};
  pwx_launch(&kernel, &shape, (void*[]){&factor, &device, &count}, 3, 0, NULL, queue, HERE);
}

static double* device_of(double* host) {
  pwx_known known = {0};
  return pwx_device(&known, host, "x", HERE);
}

static pwx_data of(pwx_data_kind kind, double* at, long count) {
  return (pwx_data){kind, "x", NULL, at, (size_t)count * sizeof(double)};
}

static void count_up(double* a) {
  for (long i = 0; i < N; ++i) a[i] = (double)i;
}

static void is_times(const double* a, long first, long last, double factor, const char* label) {
  for (long i = first; i < last; ++i)
    CHECK(a[i] == factor * (double)i, "%s: element %ld is %g, not %g", label, i, a[i], factor * (double)i);
}

/* What each kind copies to the GPU and back; `in` are the host's values, or NULL. */
static void one_kind(pwx_data_kind kind, int in, int out, long queue) {
  static pwx_data_region region;
  static double never = -1; /* no earlier copy has this value */
  const pwx_data data = of(kind, x, N);
  --never;
  for (long i = 0; i < N; ++i) x[i] = in ? (double)i : never;
  pwx_data_begin(&region, 1, &data, queue, HERE);
  CHECK(acc_is_present(x, sizeof x), "kind %d", kind);
  if (!in) {
    acc_memcpy_from_device(y, device_of(x), sizeof y);
    CHECK(y[1] != never && y[N - 1] != never, "kind %d copied", kind);
    count_up(x);
    pwx_update_device(1, &data, 0, queue, HERE);
  }
  times(3, device_of(x), N, queue);
  is_times(x, 0, N, 1, "before the end");
  pwx_data_end(&region, 1, &data, queue, HERE);
  pwx_acc_wait(1, &queue, PWX_QUEUE_SYNC, HERE);
  is_times(x, 0, N, out ? 3 : 1, "after the end");
  CHECK(!acc_is_present(x, sizeof x), "kind %d", kind);
}

static void nested(void) {
  static pwx_data_region outer, inner, part;
  const pwx_data whole = of(PWX_DATA_COPY, x, N), again = of(PWX_DATA_COPY, x, N);
  const pwx_data some = of(PWX_DATA_COPY, x + 100, 50), present = of(PWX_DATA_PRESENT, x + 3, 4);
  for (int time = 0; time < 3; ++time) {
    count_up(x);
    pwx_data_begin(&outer, 1, &whole, PWX_QUEUE_SYNC, HERE);
    double* const at = device_of(x);
    for (int turn = 0; turn < 2; ++turn) {
      pwx_data_begin(&inner, 1, &again, PWX_QUEUE_SYNC, HERE);
      times(2, device_of(x), N, PWX_QUEUE_SYNC);
      pwx_data_end(&inner, 1, &again, PWX_QUEUE_SYNC, HERE);
      is_times(x, 0, N, 1, "after an inner region");
    }
    pwx_data_begin(&part, 1, &some, PWX_QUEUE_SYNC, HERE);
    pwx_data_begin(&inner, 1, &present, PWX_QUEUE_SYNC, HERE);
    CHECK(device_of(x + 100) == at + 100 && device_of(x) == at, "a section");
    pwx_data_end(&inner, 1, &present, PWX_QUEUE_SYNC, HERE);
    pwx_data_end(&part, 1, &some, PWX_QUEUE_SYNC, HERE);
    pwx_data_end(&outer, 1, &whole, PWX_QUEUE_SYNC, HERE);
    is_times(x, 0, N, 4, "after the outer region");
    CHECK(!acc_is_present(x, 8), "after the outer region");
  }
}

static void recursive(int depth, double* of_depth) {
  static pwx_data_region region;
  const pwx_data data = of(PWX_DATA_COPY, of_depth, N / 2);
  pwx_data_begin(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
  if (depth > 0) recursive(depth - 1, depth % 2 == 0 ? y : x);
  times(2, device_of(of_depth), N / 2, PWX_QUEUE_SYNC);
  pwx_data_end(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
}

static void counted(void) {
  static pwx_data_region region;
  const pwx_data in = of(PWX_DATA_COPYIN, x, N), out = of(PWX_DATA_COPYOUT, x, N);
  const pwx_data copy = of(PWX_DATA_COPY, x, N), gone = of(PWX_DATA_DELETE, x, N);
  count_up(x);
  pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  times(5, device_of(x), N, PWX_QUEUE_SYNC);
  pwx_exit_data(1, &out, 0, PWX_QUEUE_SYNC, HERE);
  is_times(x, 0, N, 1, "one exit of two");
  pwx_data_begin(&region, 1, &copy, PWX_QUEUE_SYNC, HERE);
  pwx_exit_data(1, &out, 0, PWX_QUEUE_SYNC, HERE);
  is_times(x, 0, N, 1, "within a region");
  CHECK(acc_is_present(x, sizeof x), "within a region");
  pwx_data_end(&region, 1, &copy, PWX_QUEUE_SYNC, HERE);
  is_times(x, 0, N, 5, "after the region");
  CHECK(!acc_is_present(x, sizeof x), "after the region");
  for (int time = 0; time < 4; ++time) pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  pwx_exit_data(1, &gone, 1, PWX_QUEUE_SYNC, HERE);
  CHECK(!acc_is_present(x, sizeof x), "finalize");
}

static void updates(void) {
  const pwx_data in = of(PWX_DATA_COPYIN, x, N), gone = of(PWX_DATA_DELETE, x, N);
  const pwx_data part = of(PWX_DATA_PRESENT, x + 200, 100), absent = of(PWX_DATA_PRESENT, y, N);
  const pwx_data pointer = {PWX_DATA_PRESENT, "x", NULL, x, 0};
  count_up(x);
  pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  times(2, device_of(x), N, PWX_QUEUE_SYNC);
  pwx_update_host(1, &part, 0, PWX_QUEUE_SYNC, HERE);
  is_times(x, 0, 200, 1, "below the section");
  is_times(x, 200, 300, 2, "the section");
  is_times(x, 300, N, 1, "above the section");
  pwx_update_host(1, &pointer, 0, PWX_QUEUE_SYNC, HERE);
  is_times(x, 0, N, 2, "by a pointer");
  count_up(x);
  pwx_update_device(1, &part, 0, 7,
                    HERE); /* a queue comes after work without one, and the host after the wait */
  times(10, device_of(x) + 200, 100, 7);
  pwx_update_host(1, &pointer, 0, 7, HERE);
  pwx_acc_wait(1, (long[]){7}, PWX_QUEUE_SYNC, HERE);
  is_times(x, 0, 200, 2, "below the section");
  is_times(x, 200, 300, 10, "the section");
  is_times(x, 300, N, 2, "above the section");
  pwx_update_host(1, &absent, 1, PWX_QUEUE_SYNC, HERE);
  pwx_update_device(1, &absent, 1, PWX_QUEUE_SYNC, HERE);
  pwx_exit_data(1, &gone, 0, PWX_QUEUE_SYNC, HERE);
  static pwx_data_region region;
  const pwx_data perhaps = of(PWX_DATA_NO_CREATE, x, N);
  pwx_data_begin(&region, 1, &perhaps, PWX_QUEUE_SYNC, HERE);
  CHECK(!acc_is_present(x, sizeof x), "no_create");
  pwx_data_end(&region, 1, &perhaps, PWX_QUEUE_SYNC, HERE);
}

/* One region whose pointer changes, and memory that is reused after it was freed. */
static void other_memory(void) {
  static pwx_data_region region;
  static pwx_known known;
  for (int time = 0; time < 6; ++time) {
    double* const mine = time % 3 == 0 ? malloc(N * sizeof *mine) : time % 3 == 1 ? x : y;
    const pwx_data data = of(PWX_DATA_COPY, mine, N);
    count_up(mine);
    pwx_data_begin(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
    times(2, pwx_device(&known, mine, "mine", HERE), N, PWX_QUEUE_SYNC);
    pwx_data_end(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
    is_times(mine, 0, N, 2, "other memory");
    if (time % 3 == 0) free(mine);
  }
}

/* A distributed array that is freed while it is present, and allocated again. */
static void freed(void) {
  static pwx_nodes p;
  static pwx_template t;
  static pwx_array a;
  static pwx_known known;
  line_of_all(&p);
  cut(&t, &p, 0, 64, PWX_BLOCK, 0, NULL);
  for (int time = 0; time < 3; ++time) {
    memset(&a, 0, sizeof a);
    line(&a, &t, 64, 0, 1, 1);
    for (long i = a.dim[0].first; i <= a.dim[0].last; ++i) *at1(&a, i) = (double)i;
    const pwx_data data = {PWX_DATA_COPYIN, "a", &a, NULL, 0};
    pwx_enter_data(1, &data, PWX_QUEUE_SYNC, HERE);
    const long count = a.dim[0].last - a.dim[0].first + 1;
    if (count > 0)
      times(2, (double*)pwx_device_array(&known, &a, HERE) + a.dim[0].first - a.dim[0].base, count,
            PWX_QUEUE_SYNC);
    pwx_update_host(1, &data, 0, PWX_QUEUE_SYNC, HERE);
    for (long i = a.dim[0].first; i <= a.dim[0].last; ++i)
      CHECK(*at1(&a, i) == 2 * (double)i, "element %ld is %g", i, *at1(&a, i));
    pwx_array_free(&a);
  }
}

/* From a cyclic array to blocks, shifted by one; then a scalar of the host to a part. */
static void moved(void) {
  static pwx_nodes p;
  static pwx_template block, cyclic;
  static pwx_array a, b;
  line_of_all(&p);
  cut(&block, &p, 0, 40, PWX_BLOCK, 0, NULL);
  cut(&cyclic, &p, 0, 40, PWX_CYCLIC, 3, NULL);
  line(&a, &cyclic, 40, 0, 0, 0);
  line(&b, &block, 40, 0, 1, 1);
  pwx_data both[] = {{PWX_DATA_COPYIN, "a", &a, NULL, 0}, {PWX_DATA_COPYIN, "b", &b, NULL, 0}};
  for (long i = 0; i < 40; ++i) {
    if (owns(&a, 0, i)) *of_line(&a, i) = (double)i;
    if (owns(&b, 0, i)) *at1(&b, i) = 100;
  }
  pwx_enter_data(2, both, PWX_QUEUE_SYNC, HERE);
  for (long i = 0; i < 40 && pwx_gpu(); ++i) {
    if (owns(&a, 0, i)) *of_line(&a, i) = -1;
    if (owns(&b, 0, i)) *at1(&b, i) = -1;
  }
  const pwx_section to = {.array = &b, .ndims = 1, .dim = {{1, 30, 1, 0}}};
  const pwx_section from = {.array = &a, .ndims = 1, .dim = {{0, 30, 1, 0}}};
  static pwx_gmove_plans plans;
  pwx_gmove_device(&plans, PWX_LEFT_ON_GPU | PWX_RIGHT_ON_GPU, &to, &from, HERE);
  double seven = 7;
  const pwx_section part = {.array = &b, .ndims = 1, .dim = {{35, 3, 1, 0}}};
  const pwx_section scalar = {.base = &seven, .element_bytes = sizeof seven};
  pwx_gmove_device(&plans, PWX_LEFT_ON_GPU, &part, &scalar, HERE);
  for (long i = 0; i < 40 && pwx_gpu(); ++i)
    if (owns(&b, 0, i)) *at1(&b, i) = -1;
  pwx_update_host(1, both + 1, 0, PWX_QUEUE_SYNC, HERE);
  for (long i = 0; i < 40; ++i) {
    const double right = i >= 1 && i <= 30 ? (double)(i - 1) : i >= 35 && i < 38 ? 7 : 100;
    CHECK(!owns(&b, 0, i) || *at1(&b, i) == right, "element %ld is %g, not %g", i, *at1(&b, i), right);
  }
  pwx_array_free(&a);
  pwx_array_free(&b);
}

void test_gpu_data(void) {
  for (long queue = PWX_QUEUE_SYNC; queue < 3; ++queue) {
    one_kind(PWX_DATA_COPY, 1, 1, queue);
    one_kind(PWX_DATA_COPYIN, 1, 0, queue);
    one_kind(PWX_DATA_COPYOUT, 0, 1, queue);
    one_kind(PWX_DATA_CREATE, 0, 0, queue);
  }
  nested();
  count_up(x);
  count_up(y);
  recursive(3, x); /* x, x, y, x: copied when the outermost ends */
  is_times(x, 0, N / 2, 8, "recursive");
  is_times(y, 0, N / 2, 2, "recursive");
  counted();
  updates();
  other_memory();
  freed();
  moved();
}

void test_gpu_functions(void) {
  const acc_device_t gpus = acc_get_device_type();
  const acc_device_t others = gpus == acc_device_nvidia ? acc_device_radeon : acc_device_nvidia;
  CHECK(acc_get_num_devices(gpus) > 0 && acc_get_num_devices(others) == 0, "%d", acc_get_num_devices(gpus));
  CHECK(gpus == acc_device_nvidia || gpus == acc_device_radeon, "%d", gpus);
  CHECK(acc_get_device_num(gpus) < acc_get_num_devices(gpus), "which GPU");
  count_up(x);
  double* at = acc_copyin(x, sizeof x);
  CHECK(at != x && acc_deviceptr(x + 1) == at + 1 && acc_hostptr(at + 2) == x + 2, "addresses");
  times(2, at, N, 3);
  acc_wait(3);
  CHECK(acc_async_test(3) && acc_async_test_all(), "after a wait");
  acc_update_self(x, sizeof x / 2);
  is_times(x, 0, N / 2, 2, "acc_update_self");
  is_times(x, N / 2, N, 1, "acc_update_self");
  acc_copyout(x, sizeof x);
  is_times(x, 0, N, 2, "acc_copyout");
  CHECK(!acc_is_present(x, 8), "acc_copyout");
  at = acc_malloc(sizeof x);
  count_up(x);
  acc_memcpy_to_device(at, x, sizeof x);
  acc_map_data(x, at, sizeof x);
  CHECK(acc_is_present(x, sizeof x) && acc_deviceptr(x) == at, "acc_map_data");
  times(3, device_of(x), N, PWX_QUEUE_SYNC);
  acc_unmap_data(x);
  CHECK(!acc_is_present(x, sizeof x), "acc_unmap_data");
  acc_memcpy_from_device(x, at, sizeof x);
  is_times(x, 0, N, 3, "acc_memcpy_from_device");
  acc_free(at);
  acc_create(x, sizeof x);
  acc_update_device(x, sizeof x);
  acc_delete(x, sizeof x);
  CHECK(!acc_is_present(x, sizeof x), "acc_delete");
}
