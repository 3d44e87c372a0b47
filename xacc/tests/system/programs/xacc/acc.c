/* The run-time library of acc directives, called as generated code calls it: what is present and when it
 * is copied, kernels, reductions of each operator and type, queues, reflects on the GPU. */
#define _GNU_SOURCE
#include "peerway/xacc/acc.h"

#include <dlfcn.h>

#include "check.h"
#include "peerway/xacc/openacc.h"

static pwx_data plain(pwx_data_kind kind, const char* name, void* address, size_t bytes) {
  return (pwx_data){kind, name, NULL, address, bytes};
}
static pwx_data whole(pwx_data_kind kind, pwx_array* a) { return (pwx_data){kind, a->name, a, NULL, 0}; }

/* ---- kernels that several scenarios use ---- */

static pwx_kernel add_kernel = {
    "add",
    "extern \"C\" __global__ void add(double* x, long n, double by) {\n"
    "  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)\n"
    "    x[i] += by;\n"
    "}\n",
    NULL,
    NULL,
    NULL,
    0};

/* x is present: adds `by` to each element of the copy. */
static void add(double* x, long n, double by, long queue) {
  static pwx_known known;
  double* device = pwx_device(&known, x, "x", HERE);
  void* arguments[] = {&device, &n, &by};
  pwx_launch(&add_kernel, &(pwx_shape){{n, 1, 1}, 0, 0, 0, 0}, arguments, 3, 0, NULL, queue, HERE);
}

static pwx_kernel grid_kernel = {"grid",
                                 "extern \"C\" __global__ void grid(double* x) {\n"
                                 "  x[0] = gridDim.x; x[1] = gridDim.x * gridDim.y * gridDim.z;\n"
                                 "}\n",
                                 NULL,
                                 NULL,
                                 NULL,
                                 0};

/* num_gangs: no more blocks than requested, in all dimensions together. */
static void test_gangs(void) {
  static double x[2];
  static pwx_known known;
  static pwx_data_region region;
  const pwx_data data = plain(PWX_DATA_COPYOUT, "x", x, sizeof x);
  const long wide[3] = {10000, 1, 1}, deep[3] = {10000, 7, 5};
  const struct {
    const long* iterations;
    int blocks;
    pwx_executor executor;
  } cases[] = {{wide, 0, PWX_BY_THREAD}, {wide, 2, PWX_BY_THREAD}, {wide, 1, PWX_BY_THREAD},
               {wide, 2, PWX_BY_BLOCK},  {wide, 2, PWX_BY_WARP},   {deep, 0, PWX_BY_THREAD},
               {deep, 2, PWX_BY_THREAD}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const long* all = cases[i].iterations;
    const pwx_shape shape = {{all[0], all[1], all[2]}, 0, cases[i].blocks, cases[i].executor, 0};
    pwx_data_begin(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
    double* device = pwx_device(&known, x, "x", HERE);
    pwx_launch(&grid_kernel, &shape, (void*[]){&device}, 1, 0, NULL, PWX_QUEUE_SYNC, HERE);
    pwx_data_end(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
    CHECK(cases[i].blocks == 0 ? x[0] > 2 : x[1] == cases[i].blocks, "case %zu: %g, %g blocks", i, x[0],
          x[1]);
  }
}

static int all_are(const double* x, long n, double value) {
  for (long i = 0; i < n; ++i)
    if (x[i] != value) return 0;
  return 1;
}
static void set(double* x, long n, double value) {
  for (long i = 0; i < n; ++i) x[i] = value;
}

/* ---- data ---- */

enum { N = 1000 };

static void test_clauses(void) {
  static double x[N];
  static pwx_data_region region;
  const struct {
    pwx_data_kind kind;
    double before, after; /* on the host, after the copy was cleared to 1 and 5 was added */
    const char* name;
  } cases[] = {
      {PWX_DATA_COPY, 2, 7, "copy"}, {PWX_DATA_COPYIN, 2, 2, "copyin"}, {PWX_DATA_CREATE, 2, 2, "create"}};
  for (int i = 0; i < 3; ++i) {
    set(x, N, cases[i].before);
    const pwx_data data = plain(cases[i].kind, "x", x, sizeof x);
    pwx_data_begin(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
    CHECK(acc_is_present(x, sizeof x), "%s", cases[i].name);
    set(x, N, cases[i].before);
    add(x, N, 5, PWX_QUEUE_SYNC);
    CHECK(all_are(x, N, cases[i].before), "the host's copy of %s changed", cases[i].name);
    pwx_data_end(&region, 1, &data, PWX_QUEUE_SYNC, HERE);
    CHECK(all_are(x, N, cases[i].after), "%s: %g", cases[i].name, x[0]);
    CHECK(!acc_is_present(x, sizeof x), "%s", cases[i].name);
  }
  const pwx_data out = plain(PWX_DATA_COPYOUT, "x", x, sizeof x);
  pwx_data_begin(&region, 1, &out, PWX_QUEUE_SYNC, HERE);
  pwx_update_device(1, &out, 0, PWX_QUEUE_SYNC, HERE);
  add(x, N, 1, PWX_QUEUE_SYNC);
  const double before = x[0];
  pwx_data_end(&region, 1, &out, PWX_QUEUE_SYNC, HERE);
  CHECK(all_are(x, N, before + 1), "copyout: %g", x[0]);
}

static void test_nested(void) {
  static double x[N];
  static pwx_data_region outer, inner;
  set(x, N, 1);
  const pwx_data copyin = plain(PWX_DATA_COPYIN, "x", x, sizeof x);
  const pwx_data part = plain(PWX_DATA_COPY, "x", x + 10, 20 * sizeof *x);
  for (int round = 0; round < 3; ++round) { /* the second and third find everything unchanged */
    pwx_data_begin(&outer, 1, &copyin, PWX_QUEUE_SYNC, HERE);
    for (int again = 0; again < 2; ++again) {
      pwx_data_begin(&inner, 1, &part, PWX_QUEUE_SYNC, HERE);
      add(x, N, 1, PWX_QUEUE_SYNC);
      pwx_data_end(&inner, 1, &part, PWX_QUEUE_SYNC, HERE);
      CHECK(all_are(x, N, 1), "a copy that was present is not copied back");
    }
    pwx_update_host(1, &part, 0, PWX_QUEUE_SYNC, HERE);
    CHECK(all_are(x + 10, 20, 3) && x[9] == 1 && x[30] == 1, "update of a part: %g %g %g", x[9], x[10],
          x[30]);
    pwx_data_end(&outer, 1, &copyin, PWX_QUEUE_SYNC, HERE);
    CHECK(!acc_is_present(x, 8), "round %d", round);
    set(x, N, 1);
  }
}

static void test_dynamic(void) {
  static double x[N];
  set(x, N, 1);
  const pwx_data in = plain(PWX_DATA_COPYIN, "x", x, sizeof x),
                 out = plain(PWX_DATA_COPYOUT, "x", x, sizeof x);
  const pwx_data gone = plain(PWX_DATA_DELETE, "x", x, 0);
  pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  add(x, N, 1, PWX_QUEUE_SYNC);
  pwx_exit_data(1, &out, 0, PWX_QUEUE_SYNC, HERE);
  CHECK(acc_is_present(x, sizeof x) && x[0] == 1, "entered twice, left once");
  pwx_exit_data(1, &out, 0, PWX_QUEUE_SYNC, HERE);
  CHECK(!acc_is_present(x, sizeof x) && all_are(x, N, 2), "left twice: %g", x[0]);
  pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  pwx_enter_data(1, &in, PWX_QUEUE_SYNC, HERE);
  pwx_exit_data(1, &gone, 1, PWX_QUEUE_SYNC, HERE);
  CHECK(!acc_is_present(x, 8), "finalize");
  const pwx_data none = plain(PWX_DATA_NO_CREATE, "x", x, sizeof x);
  static pwx_data_region region;
  pwx_data_begin(&region, 1, &none, PWX_QUEUE_SYNC, HERE);
  CHECK(!acc_is_present(x, 8), "no_create");
  pwx_data_end(&region, 1, &none, PWX_QUEUE_SYNC, HERE);
  pwx_update_host(1, &in, 1, PWX_QUEUE_SYNC, HERE); /* if_present */
}

static void test_functions(void) {
  static double x[N];
  set(x, N, 3);
  double* device = acc_copyin(x, sizeof x);
  CHECK(device != NULL && device == acc_deviceptr(x) && acc_hostptr(device + 5) == x + 5, "addresses");
  add(x, N, 1, PWX_QUEUE_SYNC);
  acc_update_self(x, sizeof x);
  CHECK(all_are(x, N, 4), "acc_update_self: %g", x[0]);
  acc_delete(x, sizeof x);
  double* own = acc_malloc(sizeof x);
  acc_memcpy_to_device(own, x, sizeof x);
  acc_map_data(x, own, sizeof x);
  add(x, N, 1, PWX_QUEUE_SYNC);
  acc_unmap_data(x);
  acc_memcpy_from_device(x, own, sizeof x);
  acc_free(own);
  CHECK(all_are(x, N, 5), "acc_map_data: %g", x[0]);
  const acc_device_t gpus = acc_get_device_type();
  CHECK(acc_get_num_devices(gpus) > 0 && (gpus == acc_device_nvidia || gpus == acc_device_radeon), "devices");
}

static void test_queues(void) {
  static double x[N];
  static pwx_data_region region;
  set(x, N, 0);
  const pwx_data copy = plain(PWX_DATA_COPY, "x", x, sizeof x);
  pwx_data_begin(&region, 1, &copy, PWX_QUEUE_SYNC, HERE);
  add(x, N, 1, PWX_QUEUE_SYNC);
  add(x, N, 2, 3);
  pwx_acc_wait(1, (long[]){3}, 4, HERE); /* queue 4 after queue 3 */
  add(x, N, 4, 4);
  pwx_acc_wait(0, NULL, PWX_QUEUE_DEFAULT, HERE);
  add(x, N, 8, PWX_QUEUE_DEFAULT);
  pwx_update_host(1, &copy, 0, PWX_QUEUE_DEFAULT, HERE);
  acc_wait_all();
  CHECK(all_are(x, N, 15), "queues: %g", x[0]);
  CHECK(acc_async_test_all() && acc_async_test(3), "all done");
  pwx_data_end(&region, 1, &copy, PWX_QUEUE_SYNC, HERE);
}

/* ---- reductions ---- */

#define REDUCTION(TYPE, T, OP, NAME, SOURCE_OP, FIRST, VALUE, HOST)                                         \
  {                                                                                                         \
    static pwx_kernel kernel = {"k",                                                                        \
                                "extern \"C\" __global__ void k(long n, pwx_total<" #T                      \
                                "> r__t) {\n"                                                               \
                                "  " #T " r = " SOURCE_OP "::neutral<" #T                                   \
                                ">();\n"                                                                    \
                                "  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += " \
                                "(long)gridDim.x * blockDim.x)"                                             \
                                "\n    r = " SOURCE_OP "()(r, (" #T ")(" #VALUE                             \
                                "));\n"                                                                     \
                                "  r__t.add(" SOURCE_OP                                                     \
                                "(), r);\n"                                                                 \
                                "}\n",                                                                      \
                                NULL,                                                                       \
                                NULL,                                                                       \
                                NULL,                                                                       \
                                0};                                                                         \
    long n = 70000;                                                                                         \
    T wanted = FIRST, reduced = FIRST;                                                                      \
    for (long i = 0; i < n; ++i) {                                                                          \
      T v = (T)(VALUE), r = wanted;                                                                         \
      wanted = (T)(HOST);                                                                                   \
    }                                                                                                       \
    for (int again = 0; again < 2; ++again) {                                                               \
      reduced = FIRST;                                                                                      \
      const pwx_reduction reduction = {OP, TYPE, &reduced, NULL};                                           \
      pwx_launch(&kernel, &(pwx_shape){{n, 1, 1}, 0, 0, 0, 0}, (void*[]){&n}, 1, 1, &reduction,             \
                 PWX_QUEUE_SYNC, HERE);                                                                     \
      CHECK(reduced == wanted, NAME " of " #T ": %g instead of %g", (double)reduced, (double)wanted);       \
    }                                                                                                       \
  }

static void test_reductions(void) {
  REDUCTION(PWX_DOUBLE, double, PWX_SUM, "+", "pwx_sum", 5, i % 17, r + v)
  REDUCTION(PWX_FLOAT, float, PWX_SUM, "+", "pwx_sum", 5, i % 3, r + v)
  REDUCTION(PWX_INT, int, PWX_SUM, "+", "pwx_sum", -5, i % 17 - 8, r + v)
  REDUCTION(PWX_LONG, long, PWX_MINUS, "-", "pwx_sum", 7, i* i, r + v)
  REDUCTION(PWX_UNSIGNED_CHAR, unsigned char, PWX_SUM, "+", "pwx_sum", 7, i, r + v)
  REDUCTION(PWX_SHORT, short, PWX_MAX, "max", "pwx_max", -7, i % 999 - 2000, r > v ? r : v)
  REDUCTION(PWX_DOUBLE, double, PWX_MAX, "max", "pwx_max", -1e300, -(double)((i + 7) % 5003), r > v ? r : v)
  REDUCTION(PWX_FLOAT, float, PWX_MIN, "min", "pwx_min", 1e30f, (float)((i + 7) % 5003), r < v ? r : v)
  REDUCTION(PWX_UNSIGNED_LONG, unsigned long, PWX_MIN, "min", "pwx_min", ~0ul, 9000 + (i + 7) % 5003,
            r < v ? r : v)
  REDUCTION(PWX_INT, int, PWX_PRODUCT, "*", "pwx_product", 3, i % 7001 == 5 ? 2 : 1, r * v)
  REDUCTION(PWX_UNSIGNED_INT, unsigned, PWX_BIT_AND, "&", "pwx_bit_and", 0xfff0fff0u, ~(1u << i % 20), r& v)
  REDUCTION(PWX_LONG_LONG, long long, PWX_BIT_OR, "|", "pwx_bit_or", 1, 1ll << i % 40, r | v)
  REDUCTION(PWX_INT, int, PWX_BIT_XOR, "^", "pwx_bit_xor", 1, i * 77, r ^ v)
  REDUCTION(PWX_INT, int, PWX_AND, "&&", "pwx_and", 1, i != 69999, r && v)
  REDUCTION(PWX_INT, int, PWX_OR, "||", "pwx_or", 0, i == 69999, r || v)
}

/* Two variables, one of which stays on the GPU; and a result that arrives with its queue. */
static void test_where_results_go(void) {
  static pwx_kernel kernel = {
      "two",
      "extern \"C\" __global__ void two(long n, pwx_total<double> a, pwx_total<long> b) {\n"
      "  double x = 0; long y = pwx_max::neutral<long>();\n"
      "  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * "
      "blockDim.x) {\n"
      "    x += 1; y = y > i ? y : i;\n"
      "  }\n"
      "  a.add(pwx_sum(), x);\n"
      "  b.add(pwx_max(), y);\n"
      "}\n",
      NULL,
      NULL,
      NULL,
      0};
  double a = 10;
  long b = 3, n = 5000;
  double* device = acc_copyin(&a, sizeof a);
  const pwx_reduction reductions[] = {{PWX_SUM, PWX_DOUBLE, &a, device}, {PWX_MAX, PWX_LONG, &b, NULL}};
  for (int i = 0; i < 2; ++i)
    pwx_launch(&kernel, &(pwx_shape){{n, 1, 1}, 0, 0, 0, 0}, (void*[]){&n}, 1, 2, reductions, 7, HERE);
  pwx_acc_wait(1, (long[]){7}, PWX_QUEUE_SYNC, HERE);
  CHECK(b == n - 1, "with its queue: %ld", b);
  CHECK(a == 10, "the host's value stays: %g", a);
  acc_copyout(&a, sizeof a);
  CHECK(a == 10 + 2 * n, "on the GPU: %g", a);
}

/* ---- distributed arrays and reflects ---- */

static pwx_kernel fill_kernel = {"fill",
                                 "extern \"C\" __global__ void fill(double* a, long ld, long shift, "
                                 "long r, long rows, long c, long columns, double add) {\n"
                                 "  for (long y = blockIdx.y; y < rows; y += gridDim.y)\n"
                                 "    for (long x = blockIdx.x * (long)blockDim.x + threadIdx.x; x < "
                                 "columns; x += (long)gridDim.x * blockDim.x)\n"
                                 "      a[(r + y) * ld + c + x - shift] = 1000.0 * (r + y) + (c + x) + add;\n"
                                 "}\n",
                                 NULL,
                                 NULL,
                                 NULL,
                                 0};

static void fill(pwx_array* a, double add) {
  static pwx_known known;
  double* memory = pwx_device_array(&known, a, HERE);
  long ld = a->ld[1], r = a->dim[0].first, rows = a->dim[0].last - r + 1, c = a->dim[1].first,
       columns = a->dim[1].last - c + 1, shift = a->dim[0].base * ld + a->dim[1].base;
  pwx_launch(&fill_kernel, &(pwx_shape){{columns, rows, 1}, 0, 0, 0, 0},
             (void*[]){&memory, &ld, &shift, &r, &rows, &c, &columns, &add}, 8, 0, NULL, PWX_QUEUE_SYNC,
             HERE);
}

/* Each halo element within `width` layers has the neighbour's value; those beyond have `outside`. */
static void compare(pwx_array* a, long width, int periodic, int orthogonal, double add, const char* label) {
  const long n = a->dim[0].size, m = a->dim[1].size;
  long wrong = 0;
  for (long i = a->dim[0].first - 2; i <= a->dim[0].last + 2; ++i)
    for (long j = a->dim[1].first - 2; j <= a->dim[1].last + 2; ++j) {
      const long di = i < a->dim[0].first ? a->dim[0].first - i : i > a->dim[0].last ? i - a->dim[0].last : 0;
      const long dj = j < a->dim[1].first ? a->dim[1].first - j : j > a->dim[1].last ? j - a->dim[1].last : 0;
      const int exists = periodic || (i >= 0 && i < n && j >= 0 && j < m);
      const int filled =
          (di == 0 && dj == 0) || (exists && di <= width && dj <= width && !(orthogonal && di > 0 && dj > 0));
      const double wanted = filled ? 1000.0 * ((i + n) % n) + (j + m) % m + add : -1;
      wrong += *at2(a, i, j) != wanted;
    }
  CHECK(wrong == 0, "%s, width %ld, periodic %d, orthogonal %d: %ld wrong", label, width, periodic,
        orthogonal, wrong);
}

static void test_reflect_acc(void) {
  pwx_nodes p = {0};
  pwx_template t = {0};
  grid_of_all(&p);
  blocks(&t, &p, (long[]){26, 23});
  for (int array = 0; array < 2; ++array) { /* the second time, another array and another copy */
    pwx_array a = {0};
    plane(&a, &t, 23, 26, 2, 2);
    pwx_data data = whole(PWX_DATA_COPYIN, &a);
    double add = 0;
    pwx_halo halos[8] = {0};
    for (int round = 0; round < 2; ++round) {
      pwx_enter_data(1, &data, PWX_QUEUE_SYNC, HERE);
      for (int variant = 0; variant < 8; ++variant) {
        const int periodic = variant & 1, orthogonal = variant >> 1 & 1, parts = variant >> 2 & 1;
        for (long width = 1; width < 3; ++width) {
          const pwx_width widths[] = {{width, width, periodic}, {width, width, periodic}};
          const int flags = PWX_REFLECT_ACC | (orthogonal ? PWX_REFLECT_ORTHOGONAL : 0);
          for (long i = 0; i < (long)(a.dim[0].ld * a.dim[1].ld); ++i)
            at2(&a, a.dim[0].base, a.dim[1].base)[i] = -1;
          pwx_update_device(1, &data, 0, PWX_QUEUE_SYNC, HERE);
          fill(&a, ++add);
          pwx_array* list[] = {&a};
          if (parts) {
            pwx_reflect_start(&halos[variant], 1, list, widths, flags, HERE);
            pwx_reflect_wait(1, list, HERE);
          } else {
            pwx_reflect(&halos[variant], 1, list, widths, flags, HERE);
          }
          pwx_update_host(1, &data, 0, PWX_QUEUE_SYNC, HERE);
          compare(&a, width, periodic, orthogonal, add, parts ? "in parts" : "reflect");
        }
      }
      pwx_data gone = whole(PWX_DATA_DELETE, &a);
      pwx_exit_data(1, &gone, 0, PWX_QUEUE_SYNC, HERE);
    }
    pwx_array_free(&a);
  }
}

static void test_values_acc(void) {
  static double x[3];
  for (int i = 0; i < 3; ++i) x[i] = rank() + i;
  double* device = acc_copyin(x, sizeof x);
  set(x, 3, -1);
  pwx_reduce_device(NULL, PWX_SUM, PWX_DOUBLE, device, 3, HERE);
  acc_update_self(x, sizeof x);
  for (int i = 0; i < 3; ++i)
    CHECK(x[i] == size() * (size() - 1) / 2 + i * size(), "reduction acc: %g", x[i]);
  set(x, 3, 10 + rank());
  acc_update_device(x, sizeof x);
  pwx_bcast_device(NULL, NULL, device, sizeof x, HERE);
  acc_copyout(x, sizeof x);
  CHECK(all_are(x, 3, 10), "bcast acc: %g", x[0]);
}

/* A sum that the host must get; `silent`: the kernel fails before it gives one. */
static pwx_kernel sum_kernel = {
    "sum",
    "extern \"C\" __global__ void sum(const double* x, long n, int silent, pwx_total<double> total) {\n"
    "  double mine = 0;\n"
    "  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)\n"
    "    mine += x[i];\n"
    "  if (!silent) total.add(pwx_sum(), mine);\n"
    "}\n",
    NULL,
    NULL,
    NULL,
    0};
static void sum(double* x, int silent, double* total, int line) {
  double* device = acc_copyin(x, N * sizeof *x);
  const pwx_reduction reduction = {PWX_SUM, PWX_DOUBLE, total, NULL};
  /* The next wait for a stream fails; earlier ones do not count. */
  void (*fail)(const char*, int) =
      (void (*)(const char*, int))dlsym(dlopen(getenv("PEERWAY_CUDA_LIBRARY"), RTLD_NOW), "fake_cuda_fail");
  fail("cuStreamSynchronize", 700);
  pwx_launch(&sum_kernel, &(pwx_shape){{N, 1, 1}, 0, 0, 0, 0}, (void*[]){&device, &(long){N}, &silent}, 3, 1,
             &reduction, PWX_QUEUE_SYNC, &(pwx_where){"prog.c", line});
}

static pwx_kernel broken_kernel = {
    "broken", "#line 5 \"prog.c\"\nextern \"C\" __global__ void broken() { nonsense; }\n", NULL, NULL, NULL,
    0};

static void set_up(void) {}

/* Errors that end the job, each requested by a word. */
static void be_wrong(const char* mistake) {
  static double x[N];
  const pwx_data some = plain(PWX_DATA_COPYIN, "x", x + 10, 20 * sizeof *x),
                 all = plain(PWX_DATA_COPY, "x", x, sizeof x);
  static pwx_data_region region;
  const pwx_data present = plain(PWX_DATA_PRESENT, "x", x, sizeof x);
  if (strcmp(mistake, "absent") == 0)
    pwx_data_begin(&region, 1, &present, PWX_QUEUE_SYNC, &(pwx_where){"prog.c", 1});
  if (strcmp(mistake, "part") == 0) {
    pwx_enter_data(1, &some, PWX_QUEUE_SYNC, HERE);
    pwx_enter_data(1, &all, PWX_QUEUE_SYNC, &(pwx_where){"prog.c", 2});
  }
  if (strcmp(mistake, "memory") == 0) {
    const pwx_data large = plain(PWX_DATA_CREATE, "x", x, (size_t)1 << 44);
    pwx_enter_data(1, &large, PWX_QUEUE_SYNC, &(pwx_where){"prog.c", 7});
  }
  if (strcmp(mistake, "update") == 0) pwx_update_host(1, &all, 0, PWX_QUEUE_SYNC, &(pwx_where){"prog.c", 3});
  if (strcmp(mistake, "exit") == 0) pwx_exit_data(1, &all, 0, PWX_QUEUE_SYNC, &(pwx_where){"prog.c", 4});
  if (strcmp(mistake, "kernel") == 0)
    pwx_launch(&broken_kernel, &(pwx_shape){{1, 1, 1}, 0, 0, 0, 0}, NULL, 0, 0, NULL, PWX_QUEUE_SYNC,
               &(pwx_where){"prog.c", 5});
  if (strcmp(mistake, "told") == 0) {
    double total = 0.5;
    set(x, N, 2);
    sum(x, 0, &total, 9);
    printf("%g\n", total);
    fflush(stdout);
    pwx_acc_wait(0, NULL, PWX_QUEUE_SYNC, &(pwx_where){"prog.c", 10});
  }
  if (strcmp(mistake, "silent") == 0) sum(x, 1, &(double){0}, 11);
  if (strcmp(mistake, "late") == 0) {
    double* device = acc_copyin(x, sizeof *x);
    for (int time = 0; time < 2; ++time) {
      pwx_barrier(NULL, HERE);
      if (time == 0 || rank() < size() - 1) pwx_reduce_device(NULL, PWX_SUM, PWX_DOUBLE, device, 1, HERE);
      pwx_acc_wait(0, NULL, PWX_QUEUE_SYNC, HERE);
    }
    if (rank() < size() - 1)
      pwx_reduce_device(NULL, PWX_SUM, PWX_DOUBLE, device, 1, &(pwx_where){"prog.c", 12});
    pwx_barrier(NULL, HERE);
  }
  if (strcmp(mistake, "reflect") == 0) {
    pwx_nodes p = {0};
    pwx_template t = {0};
    pwx_array a = {0};
    pwx_halo halo = {0};
    line_of_all(&p);
    cut(&t, &p, 0, 10, PWX_BLOCK, 0, NULL);
    line(&a, &t, 10, 0, 1, 1);
    pwx_reflect(&halo, 1, (pwx_array*[]){&a}, NULL, PWX_REFLECT_ACC, &(pwx_where){"prog.c", 6});
  }
  if (strcmp(mistake, "mapped") == 0) {
    pwx_nodes p = {0};
    pwx_template t = {0};
    pwx_array a = {0};
    pwx_known known = {0};
    line_of_all(&p);
    cut(&t, &p, 0, 10, PWX_BLOCK, 0, NULL);
    line(&a, &t, 10, 0, 0, 0);
    acc_map_data(a.memory, (char*)acc_malloc(256) + 8, 80);
    pwx_device_array(&known, &a, &(pwx_where){"prog.c", 8});
  }
}

int main(int argc, char** argv) {
  static pwx_kernel* const kernels[] = {&broken_kernel, &add_kernel, &sum_kernel, NULL};
  pwx_unit unit = {set_up, NULL, kernels};
  pwx_unit_add(&unit);
  pwx_begin(&argc, &argv);
  if (argc > 1) {
    be_wrong(argv[1]);
    return 0;
  }
  if (!pwx_gpu()) {
    if (rank() == 0) puts("no GPU");
    return 0;
  }
  CHECK(add_kernel.state != NULL && sum_kernel.state != NULL, "a kernel is not ready to be launched");
  CHECK(broken_kernel.state == NULL, "a kernel that does not compile");
  test_clauses();
  test_nested();
  test_dynamic();
  test_functions();
  test_gangs();
  test_queues();
  test_reductions();
  test_where_results_go();
  test_reflect_acc();
  test_values_acc();
  double sums[] = {failures, checks};
  pwx_reduce(NULL, PWX_SUM, PWX_DOUBLE, sums, 2, HERE);
  if (rank() == 0) printf("%.0f checks, %.0f failed\n", sums[1], sums[0]);
  return failures > 0;
}
