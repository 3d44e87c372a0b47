/* Kernels: shapes, reductions of every operator and type, atomics, queues. */
#include <complex.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>

#include "gpu.h"

enum { N = 1500 };

#define EACH_X \
  "for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)"

static void shapes(void) {
  static pwx_kernel fill = {.name = "fill",
                            .source =
                                "extern \"C\" __global__ void fill(int* a, long l, long m, long n) {\n"
                                "  for (long k = blockIdx.z; k < l; k += gridDim.z)\n"
                                "    for (long j = blockIdx.y; j < m; j += gridDim.y)\n      " EACH_X
                                "\n        a[(k * m + j) * n + i] += (int)((k * m + j) * n + i);\n}\n"};
  static int a[5 * 7 * 70];
  int* device = acc_copyin(a, sizeof a);
  const pwx_shape of[] = {{{70, 7, 5}, 0, 0, 0, 0},
                          {{70, 7, 5}, 32, 0, 0, 4},
                          {{70, 7, 5}, 1, 0, 0, 0},
                          {{70, 7, 5}, 1024, 2, 0, 0},
                          {{70, 0, 5}, 0, 0, 0, 0}};
  for (int time = 0; time < 5; ++time)
    pwx_launch(&fill, &of[time], (void*[]){&device, &(long){5}, &(long){7}, &(long){70}}, 4, 0, NULL,
               PWX_QUEUE_SYNC, HERE);
  acc_copyout(a, sizeof a);
  for (int i = 0; i < 5 * 7 * 70; ++i) CHECK(a[i] == 4 * i, "element %d is %d", i, a[i]);
}

/* A block sums a row, and the sums of the rows are summed. */
static void by_block(void) {
  static pwx_kernel rows = {
      .name = "rows",
      .source =
          "extern \"C\" __global__ void rows(const double* a, double* sums, long m, long n,\n"
          "                                pwx_total<double> all) {\n"
          "  double mine = 0;\n"
          "  for (long j = blockIdx.x; j < m; j += gridDim.x) {\n"
          "    double part = 0;\n"
          "    for (long i = threadIdx.x; i < n; i += blockDim.x) part += a[j * n + i];\n"
          "    part = pwx_block(pwx_sum(), part);\n"
          "    if (threadIdx.x == 0) { sums[j] = part; mine += part; }\n"
          "  }\n  all.add(pwx_sum(), mine);\n}\n"};
  enum { M = 200, LONG = 90 };
  static double a[M * LONG], sums[M];
  for (int i = 0; i < M * LONG; ++i) a[i] = i % 17;
  for (int threads = 0; threads <= 96; threads += 48) {
    double total = 0.5, right = 0.5;
    double* in = acc_copyin(a, sizeof a);
    double* out = acc_create(sums, sizeof sums);
    const pwx_reduction reduction = {PWX_SUM, PWX_DOUBLE, &total, NULL};
    pwx_launch(&rows, &(pwx_shape){{M, 1, 1}, threads, 0, 1, 0},
               (void*[]){&in, &out, &(long){M}, &(long){LONG}}, 4, 1, &reduction, PWX_QUEUE_SYNC, HERE);
    acc_delete(a, sizeof a);
    acc_copyout(sums, sizeof sums);
    for (int j = 0; j < M; ++j) {
      double sum = 0;
      for (int i = 0; i < LONG; ++i) sum += a[j * LONG + i];
      CHECK(sums[j] == sum, "row %d: %g, not %g", j, sums[j], sum);
      right += sum;
    }
    CHECK(total == right, "%g, not %g", total, right);
  }
}

static void atomics(void) {
  static pwx_kernel count = {
      .name = "count",
      .source =
          "extern \"C\" __global__ void count(double* d, long* l, int* i3, unsigned short* s, float* f,\n"
          "                                 long n) {\n  " EACH_X
          " {\n    pwx_atomic(pwx_sum(), *d, (double)i);\n    pwx_atomic(pwx_max(), *l, i);\n"
          "    pwx_atomic_update(*i3, [&](int x) { return (x + 1) % 1000; });\n"
          "    pwx_atomic(pwx_sum(), *s, (unsigned short)1);\n"
          "    pwx_atomic(pwx_min(), *f, (float)-i);\n"
          "    if (i == 0) pwx_atomic_write(l[1], pwx_atomic_read(l[2]) + 1);\n  }\n}\n"};
  struct {
    double d;
    long l[3];
    float f;
    int i;
    unsigned short s;
  } v = {0.5, {-1, 0, 41}, 3, 10, 65000};
  char* at = acc_copyin(&v, sizeof v);
  void *d = at + offsetof(__typeof__(v), d), *l = at + offsetof(__typeof__(v), l);
  void *f = at + offsetof(__typeof__(v), f), *i = at + offsetof(__typeof__(v), i);
  void* s = at + offsetof(__typeof__(v), s);
  pwx_launch(&count, &(pwx_shape){{N, 1, 1}, 0, 0, 0, 0}, (void*[]){&d, &l, &i, &s, &f, &(long){N}}, 6, 0,
             NULL, PWX_QUEUE_SYNC, HERE);
  acc_copyout(&v, sizeof v);
  CHECK(v.d == 0.5 + N * (N - 1) / 2, "%g", v.d);
  CHECK(v.l[0] == N - 1 && v.l[1] == 42, "%ld %ld", v.l[0], v.l[1]);
  CHECK(v.i == (10 + N) % 1000, "%d", v.i);
  CHECK(v.s == (unsigned short)(65000 + N), "%d", v.s);
  CHECK(v.f == -(N - 1), "%g", (double)v.f);
}

/* Work without a queue, on a queue, and on another one that waits for it: in program order. */
static void queues(void) {
  static pwx_kernel step = {
      .name = "step",
      .source = "extern \"C\" __global__ void step(long* a, long factor, long add, long n) {\n  " EACH_X
                " a[i] = a[i] * factor + add;\n}\n"};
  static long a[N];
  const pwx_shape shape = {{N, 1, 1}, 0, 0, 0, 0};
  long* at = acc_copyin(a, sizeof a);
#define STEP(factor, add, queue)                                                                          \
  pwx_launch(&step, &shape, (void*[]){&at, &(long){factor}, &(long){add}, &(long){N}}, 4, 0, NULL, queue, \
             HERE)
  STEP(1, 1, PWX_QUEUE_SYNC);
  STEP(10, 2, 1);
  pwx_acc_wait(1, (long[]){1}, 2, HERE);
  STEP(10, 3, 2);
  pwx_acc_wait(1, (long[]){2}, PWX_QUEUE_DEFAULT, HERE);
  STEP(10, 4, PWX_QUEUE_DEFAULT);
  pwx_acc_wait(0, NULL, PWX_QUEUE_SYNC, HERE);
  STEP(10, 5, PWX_QUEUE_SYNC);
  acc_copyout(a, sizeof a);
  for (int i = 0; i < N; ++i) CHECK(a[i] == 12345, "element %d is %ld", i, a[i]);
}

void test_gpu_kernels(void) {
  shapes();
  by_block();
  atomics();
  queues();
}

/* One kernel for a type, with all its operators. The old value takes part. */
#define COMMON(X) X(sum, PWX_SUM) X(product, PWX_PRODUCT) X(max, PWX_MAX) X(min, PWX_MIN)
#define LOGICAL(X) X(and, PWX_AND) X(or, PWX_OR)
#define BITS(X) X(bit_and, PWX_BIT_AND) X(bit_or, PWX_BIT_OR) X(bit_xor, PWX_BIT_XOR)

typedef struct reduced {
  pwx_op op;
  double right;
} reduced;

/* Element i of the kernel's input: small, so that all results are exact. */
static int element(long i, pwx_op op) {
  if (op == PWX_PRODUCT) return i % 500 == 7 ? 2 : 1;
  if (op == PWX_AND) return i != 900;
  if (op == PWX_OR) return i == 900;
  if (op == PWX_BIT_AND) return i == 400 ? 0x5b : 0x7f;
  if (op == PWX_BIT_OR) return i == 1100 ? 0x24 : i == 3 ? 0x09 : 0;
  if (op == PWX_BIT_XOR) return i % 100 == 0 ? 0x3f & (int)(i / 100) : 0;
  if (op == PWX_MAX) return i == 77 ? 101 : 20;
  if (op == PWX_MIN) return i == 1499 ? 2 : 20;
  return i % 100 == 5 ? 3 : 0;
}

static double right_value(pwx_op op, double before) {
  long value = (long)before;
  for (long i = 0; i < N; ++i) {
    const long x = element(i, op);
    switch (op) {
      case PWX_SUM:
        value += x;
        break;
      case PWX_PRODUCT:
        value *= x;
        break;
      case PWX_MAX:
        value = value > x ? value : x;
        break;
      case PWX_MIN:
        value = value < x ? value : x;
        break;
      case PWX_AND:
        value = value && x;
        break;
      case PWX_OR:
        value = value || x;
        break;
      case PWX_BIT_AND:
        value &= x;
        break;
      case PWX_BIT_OR:
        value |= x;
        break;
      default:
        value ^= x;
        break;
    }
  }
  return (double)value;
}

#define KINDS 9
static const pwx_op kOps[KINDS] = {PWX_SUM, PWX_PRODUCT, PWX_MAX,    PWX_MIN,    PWX_AND,
                                   PWX_OR,  PWX_BIT_AND, PWX_BIT_OR, PWX_BIT_XOR};
static const char* const kNames[KINDS] = {"pwx_sum", "pwx_product", "pwx_max",    "pwx_min",    "pwx_and",
                                          "pwx_or",  "pwx_bit_and", "pwx_bit_or", "pwx_bit_xor"};

/* `text`: of kernels[operator][i] in `a`; int, so that one array serves all types. */
static const char* source_for(const char* type, const char* name, int ops) {
  char* text = malloc(8192);
  char* end = text + sprintf(text, "extern \"C\" __global__ void %s(const int* a, long n", name);
  for (int k = 0; k < ops; ++k) end += sprintf(end, ", pwx_total<%s> t%d", type, k);
  end += sprintf(end, ") {\n");
  for (int k = 0; k < ops; ++k)
    end += sprintf(end, "  %s v%d = %s::neutral<%s>();\n", type, k, kNames[k], type);
  end += sprintf(end, "  %s {\n", EACH_X);
  for (int k = 0; k < ops; ++k)
    end += sprintf(end, "    v%d = %s()(v%d, (%s)a[%d * n + i]);\n", k, kNames[k], k, type, k);
  end += sprintf(end, "  }\n");
  for (int k = 0; k < ops; ++k) end += sprintf(end, "  t%d.add(%s(), v%d);\n", k, kNames[k], k);
  sprintf(end, "}\n");
  return text;
}

static int inputs[KINDS][N];

/* On the host at once, on the host after a queue, and left on the GPU. */
#define REDUCE(type, enumerator, ops)                                                                        \
  do {                                                                                                       \
    static char name[64];                                                                                    \
    snprintf(name, sizeof name, "reduce_%d", enumerator);                                                    \
    pwx_kernel kernel = {name, source_for(#type, name, ops), NULL, NULL, NULL, 0};                           \
    for (long queue = PWX_QUEUE_SYNC; queue < 2; queue += 3)                                                 \
      for (int stays = 0; stays < 2; ++stays) {                                                              \
        type values[KINDS];                                                                                  \
        pwx_reduction reductions[KINDS];                                                                     \
        const int before[KINDS] = {1, 1, 3, 9, 1, 0, 0x7f, 0, 0x15};                                         \
        for (int k = 0; k < ops; ++k) values[k] = (type)before[k];                                           \
        type* const device = stays ? acc_copyin(values, sizeof values) : NULL;                               \
        for (int k = 0; k < ops; ++k)                                                                        \
          reductions[k] = (pwx_reduction){kOps[k], enumerator, &values[k], stays ? device + k : NULL};       \
        int* in = acc_deviceptr(inputs);                                                                     \
        for (int time = 0; time < 2; ++time) {                                                               \
          pwx_launch(&kernel, &(pwx_shape){{N, 1, 1}, 96 * (time + 1), 0, 0, 0}, (void*[]){&in, &(long){N}}, \
                     2, ops, reductions, queue, HERE);                                                       \
          if (time == 0) { /* the second time starts from the first values again */                          \
            pwx_acc_wait(1, &queue, PWX_QUEUE_SYNC, HERE);                                                   \
            for (int k = 0; k < ops; ++k) values[k] = (type)before[k];                                       \
            if (stays) acc_update_device(values, sizeof values);                                             \
          }                                                                                                  \
        }                                                                                                    \
        pwx_acc_wait(1, &queue, PWX_QUEUE_SYNC, HERE);                                                       \
        if (stays) acc_copyout(values, sizeof values);                                                       \
        for (int k = 0; k < ops; ++k) {                                                                      \
          const type right =                                                                                 \
              (type)(sizeof(type) < 8 && (type)0.5 == 0 ? (type)(long)right_value(kOps[k], before[k])        \
                                                        : (type)right_value(kOps[k], before[k]));            \
          CHECK(values[k] == right, "%s of " #type ", queue %ld, stays %d: %g, not %g", kNames[k], queue,    \
                stays, (double)values[k], (double)right);                                                    \
        }                                                                                                    \
      }                                                                                                      \
    free((char*)kernel.source);                                                                              \
  } while (0)

/* Complex numbers have sums and products. Small whole numbers, so that all results are exact. */
#define REDUCE_COMPLEX(type, real, enumerator)                                                             \
  do {                                                                                                     \
    static char text[1024], name[] = "complex_" #real;                                                     \
    snprintf(text, sizeof text,                                                                            \
             "extern \"C\" __global__ void %s(long n, pwx_total<%s> s, pwx_total<%s> p) {\n"               \
             "  %s sum = pwx_sum::neutral<%s>(), product = pwx_product::neutral<%s>();\n  %s {\n"          \
             "    sum += %s(%s(i), 2);\n    if (i %% 400 == 9) product *= %s(1, 2);\n  }\n"                \
             "  s.add(pwx_sum(), sum);\n  p.add(pwx_product(), product);\n}\n",                            \
             name, type, type, type, type, type, EACH_X, type, #real, type);                               \
    pwx_kernel kernel = {name, text, NULL, NULL, NULL, 0};                                                 \
    for (long queue = PWX_QUEUE_SYNC; queue < 2; queue += 3)                                               \
      for (int stays = 0; stays < 2; ++stays) {                                                            \
        real _Complex values[2] = {3 + 1.0f * _Complex_I, 1 - 1.0f * _Complex_I};                          \
        real _Complex* const device = stays ? acc_copyin(values, sizeof values) : NULL;                    \
        const pwx_reduction reductions[] = {                                                               \
            {PWX_SUM, enumerator, &values[0], stays ? device : NULL},                                      \
            {PWX_PRODUCT, enumerator, &values[1], stays ? device + 1 : NULL}};                             \
        pwx_launch(&kernel, &(pwx_shape){{N, 1, 1}, 96, 0, 0, 0}, (void*[]){&(long){N}}, 1, 2, reductions, \
                   queue, HERE);                                                                           \
        pwx_acc_wait(1, &queue, PWX_QUEUE_SYNC, HERE);                                                     \
        if (stays) acc_copyout(values, sizeof values);                                                     \
        CHECK(creal(values[0]) == 3 + N * (N - 1) / 2 && cimag(values[0]) == 1 + 2 * N,                    \
              #real " sum, queue %ld, stays %d: %g %g", queue, stays, creal(values[0]), cimag(values[0])); \
        CHECK(creal(values[1]) == -31 && cimag(values[1]) == -17, /* (1 - i) (1 + 2 i)^4 */                \
              #real " product, queue %ld, stays %d: %g %g", queue, stays, creal(values[1]),                \
              cimag(values[1]));                                                                           \
      }                                                                                                    \
  } while (0)

void test_gpu_reductions(void) {
  REDUCE_COMPLEX("pwx_complex<double>", double, PWX_DOUBLE_COMPLEX);
  REDUCE_COMPLEX("pwx_complex<float>", float, PWX_FLOAT_COMPLEX);
  for (int k = 0; k < KINDS; ++k)
    for (long i = 0; i < N; ++i) inputs[k][i] = element(i, kOps[k]);
  acc_copyin(inputs, sizeof inputs);
  REDUCE(char, PWX_CHAR, 9);
  REDUCE(signed char, PWX_SIGNED_CHAR, 9);
  REDUCE(unsigned char, PWX_UNSIGNED_CHAR, 9);
  REDUCE(short, PWX_SHORT, 9);
  REDUCE(unsigned short, PWX_UNSIGNED_SHORT, 9);
  REDUCE(int, PWX_INT, 9);
  REDUCE(unsigned int, PWX_UNSIGNED_INT, 9);
  REDUCE(long, PWX_LONG, 9);
  REDUCE(unsigned long, PWX_UNSIGNED_LONG, 9);
  REDUCE(long long, PWX_LONG_LONG, 9);
  REDUCE(unsigned long long, PWX_UNSIGNED_LONG_LONG, 9);
  REDUCE(float, PWX_FLOAT, 6);
  REDUCE(double, PWX_DOUBLE, 6);
  acc_delete(inputs, sizeof inputs);
}

/* reduction and bcast with acc: repeated, of many values, of complex numbers, and on some nodes. */
static void many(long count) {
  double* values = malloc((size_t)count * sizeof *values);
  double* at = acc_create(values, (size_t)count * sizeof *values);
  for (int time = 0; time < 5; ++time) {
    for (long i = 0; i < count; ++i) values[i] = (double)(rank() * i + time);
    acc_update_device(values, (size_t)count * sizeof *values);
    for (long i = 0; i < count && pwx_gpu(); ++i) values[i] = -1;
    pwx_reduce_device(NULL, PWX_SUM, PWX_DOUBLE, at, (size_t)count, HERE);
    pwx_reduce_device(NULL, PWX_MAX, PWX_DOUBLE, at, (size_t)count,
                      HERE); /* of a value that is the same everywhere */
    acc_update_self(values, (size_t)count * sizeof *values);
    const int n = size();
    for (long i = 0; i < count; ++i)
      CHECK(values[i] == (double)(n * (n - 1) / 2 * i + n * time), "element %ld of %ld: %g", i, count,
            values[i]);
    for (int root = 0; root < n; ++root) {
      static pwx_nodes p;
      if (p.ndims == 0) line_of_all(&p);
      const pwx_ref from = {.nodes = &p, .sub = {{PWX_RANGE, root + 1, root + 1, 1}}};
      for (long i = 0; i < count; ++i) values[i] = (double)(rank() + time + i);
      acc_update_device(values, (size_t)count * sizeof *values);
      pwx_bcast_device(NULL, &from, at, (size_t)count * sizeof *values, HERE);
      acc_update_self(values, (size_t)count * sizeof *values);
      for (long i = 0; i < count; ++i)
        CHECK(values[i] == (double)(root + time + i), "element %ld from %d: %g", i, root, values[i]);
    }
  }
  acc_delete(values, (size_t)count * sizeof *values);
  free(values);
}

static void some_nodes(void) {
  static pwx_nodes p;
  if (size() < 2) return;
  line_of_all(&p);
  const pwx_ref first = {.nodes = &p, .sub = {{PWX_RANGE, 1, 2, 1}}};
  int value = 10 + rank();
  int* at = acc_copyin(&value, sizeof value);
  pwx_reduce_device(&first, PWX_PRODUCT, PWX_INT, at, 1, HERE);
  acc_copyout(&value, sizeof value);
  CHECK(value == (rank() < 2 ? 110 : 10 + rank()), "%d", value);
}

void test_gpu_values(void) {
  long values[3] = {rank() + 1, -rank(), 7};
  long* at = acc_copyin(values, sizeof values);
  pwx_reduce_device(NULL, PWX_SUM, PWX_LONG, at, 2, HERE);
  pwx_reduce_device(NULL, PWX_MAX, PWX_LONG, at + 2, 1, HERE);
  acc_copyout(values, sizeof values);
  const long n = size();
  CHECK(values[0] == n * (n + 1) / 2 && values[1] == -n * (n - 1) / 2 && values[2] == 7, "%ld %ld %ld",
        values[0], values[1], values[2]);
  double _Complex z = 1 + rank() * 1i;
  double _Complex* there = acc_copyin(&z, sizeof z);
  pwx_reduce_device(NULL, PWX_SUM, PWX_DOUBLE_COMPLEX, there, 1, HERE);
  acc_copyout(&z, sizeof z);
  CHECK(creal(z) == (double)n && cimag(z) == (double)(n * (n - 1) / 2), "%g %g", creal(z), cimag(z));
  unsigned char flags[3] = {(unsigned char)(1 << rank()), 0xff, (unsigned char)rank()};
  unsigned char* bytes = acc_copyin(flags, sizeof flags);
  pwx_reduce_device(NULL, PWX_BIT_OR, PWX_UNSIGNED_CHAR, bytes, 1, HERE);
  pwx_reduce_device(NULL, PWX_MIN, PWX_UNSIGNED_CHAR, bytes + 2, 1, HERE);
  acc_copyout(flags, sizeof flags);
  CHECK(flags[0] == (1 << n) - 1 && flags[1] == 0xff && flags[2] == 0, "%d %d %d", flags[0], flags[1],
        flags[2]);
  many(1);
  many(1000);
  some_nodes();
}
