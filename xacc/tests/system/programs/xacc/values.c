/* Reductions, broadcasts, barriers, and tasks of some nodes. */
#include "check.h"

static void test_operators(void) {
  const int n = size(), me = rank();
  int i = me + 1;
  pwx_reduce(NULL, PWX_SUM, PWX_INT, &i, 1, HERE);
  CHECK(i == n * (n + 1) / 2, "%d", i);
  double d = me + 1;
  pwx_reduce(NULL, PWX_PRODUCT, PWX_DOUBLE, &d, 1, HERE);
  double product = 1;
  for (int k = 2; k <= n; ++k) product *= k;
  CHECK(d == product, "%g", d);
  float f = (float)((me * 7) % 5);
  float greatest = 0, least = 9;
  for (int k = 0; k < n; ++k) {
    const float of = (float)((k * 7) % 5);
    greatest = of > greatest ? of : greatest;
    least = of < least ? of : least;
  }
  float low = f;
  pwx_reduce(NULL, PWX_MAX, PWX_FLOAT, &f, 1, HERE);
  pwx_reduce(NULL, PWX_MIN, PWX_FLOAT, &low, 1, HERE);
  CHECK(f == greatest && low == least, "%g %g", f, low);
  unsigned long bits = 1UL << me, all = (1UL << n) - 1;
  pwx_reduce(NULL, PWX_BIT_OR, PWX_UNSIGNED_LONG, &bits, 1, HERE);
  CHECK(bits == all, "%lx", bits);
  bits = ~(1UL << me);
  pwx_reduce(NULL, PWX_BIT_AND, PWX_UNSIGNED_LONG, &bits, 1, HERE);
  CHECK(bits == ~all, "%lx", bits);
  unsigned char odd = 3;
  pwx_reduce(NULL, PWX_BIT_XOR, PWX_UNSIGNED_CHAR, &odd, 1, HERE);
  CHECK(odd == (n % 2 ? 3 : 0), "%d", odd);
  long yes = n == 1 ? 1 : me + 5, no = me == 0 ? 0 : 4;
  pwx_reduce(NULL, PWX_AND, PWX_LONG, &yes, 1, HERE);
  pwx_reduce(NULL, PWX_OR, PWX_LONG, &no, 1, HERE);
  CHECK(yes == 1 && no == (n > 1), "%ld %ld", yes, no);
  double complex_sum[2] = {me, 1};
  pwx_reduce(NULL, PWX_SUM, PWX_DOUBLE_COMPLEX, complex_sum, 1, HERE);
  CHECK(complex_sum[0] == n * (n - 1) / 2.0 && complex_sum[1] == n, "%g", complex_sum[0]);
  long double precise = 1 + 1e-18L;
  pwx_reduce(NULL, PWX_MAX, PWX_LONG_DOUBLE, &precise, 1, HERE);
  CHECK(precise == 1 + 1e-18L, "%Lg", precise);
}

/* The same bits on all nodes, for any length: by recursive doubling, and around a ring. */
static void test_lengths(void) {
  static double values[40001], first[40001];
  const size_t lengths[] = {1, 2, 31, 2048, 2049, 8192, 40001};
  for (int k = 0; k < 7; ++k) {
    const size_t count = lengths[k];
    for (size_t i = 0; i < count; ++i) values[i] = 1.0 / (double)(1 + i + (size_t)rank() * 37);
    pwx_reduce(NULL, PWX_SUM, PWX_DOUBLE, values, count, HERE);
    memcpy(first, values, count * sizeof *first);
    pwx_bcast(NULL, NULL, first, count * sizeof *first, HERE);
    CHECK(memcmp(first, values, count * sizeof *first) == 0, "%zu elements", count);
    for (size_t i = 0; i < count; i += 97) {
      double sum = 0;
      for (int r = 0; r < size(); ++r) sum += 1.0 / (double)(1 + i + (size_t)r * 37);
      CHECK(values[i] > sum * (1 - 1e-12) && values[i] < sum * (1 + 1e-12), "element %zu: %g", i, values[i]);
    }
  }
}

static void test_locations(void) {
  const int n = size(), me = rank();
  for (int equal = 0; equal < 2; ++equal) {
    double value = equal ? 4 : (double)((me * 3) % 7);
    int i = me, j = -me;
    pwx_reduce_location(NULL, PWX_FIRST_MAX, PWX_DOUBLE, &value, 2, (void*[]){&i, &j},
                        (size_t[]){sizeof i, sizeof j}, HERE);
    int right = 0;
    for (int k = 1; k < n; ++k)
      if (!equal && (k * 3) % 7 > (right * 3) % 7) right = k;
    CHECK(i == right && j == -right, "%d, not %d", i, right);
    value = equal ? 4 : (double)((me * 3) % 7);
    i = me;
    pwx_reduce_location(NULL, PWX_LAST_MIN, PWX_DOUBLE, &value, 1, (void*[]){&i}, (size_t[]){sizeof i}, HERE);
    right = 0;
    for (int k = 1; k < n; ++k)
      if (equal || (k * 3) % 7 <= (right * 3) % 7) right = k;
    CHECK(i == right, "%d, not %d", i, right);
  }
}

void test_values(void) {
  static pwx_nodes q;
  static pwx_template t;
  static pwx_array a;
  grid_of_all(&q);
  test_operators();
  test_lengths();
  test_locations();
  for (int time = 0; time < 20; ++time) pwx_barrier(NULL, HERE);
  /* along one dimension of the nodes, each row separately */
  const pwx_ref row = {.nodes = &q, .sub = {{PWX_ALL, 0, 0, 0}, {PWX_MINE, 0, 0, 0}}};
  int columns = q.at[0];
  pwx_reduce(&row, PWX_SUM, PWX_INT, &columns, 1, HERE);
  CHECK(columns == q.size[0] * (q.size[0] - 1) / 2, "%d", columns);
  const pwx_ref last = {.nodes = &q,
                        .sub = {{PWX_RANGE, q.size[0], q.size[0], 1}, {PWX_RANGE, q.size[1], q.size[1], 1}}};
  long whom = rank();
  pwx_bcast(NULL, &last, &whom, sizeof whom, HERE);
  CHECK(whom == size() - 1, "%ld", whom);
  const pwx_ref row_end = {.nodes = &q, .sub = {{PWX_RANGE, q.size[0], q.size[0], 1}, {PWX_MINE, 0, 0, 0}}};
  whom = rank();
  pwx_bcast(&row, &row_end, &whom, sizeof whom, HERE);
  CHECK(whom == q.at[1] * q.size[0] + q.size[0] - 1, "%ld", whom);
  pwx_barrier(&row, HERE);
  /* an array that is replicated along the second dimension of the nodes */
  blocks(&t, &q, (long[]){5, 5});
  pwx_array_init(&a, "r", sizeof(double), 1, (long[]){5}, &t, (int[]){0}, (long[]){0}, (long[]){1},
                 (long[]){0}, HERE);
  for (long i = a.dim[0].first; i <= a.dim[0].last; ++i) *at1(&a, i) = (double)(i * (q.at[1] + 1));
  const pwx_ref column = {.nodes = &q, .sub = {{PWX_MINE, 0, 0, 0}, {PWX_ALL, 0, 0, 0}}};
  pwx_reduce_array(&column, PWX_SUM, PWX_DOUBLE, &a, HERE);
  for (long i = a.dim[0].first; i <= a.dim[0].last; ++i)
    CHECK(*at1(&a, i) == (double)(i * q.size[1] * (q.size[1] + 1) / 2), "%g", *at1(&a, i));
  pwx_array_free(&a);
}

void test_tasks(void) {
  static pwx_nodes p, half;
  static pwx_template t, th;
  static pwx_array a;
  static pwx_halo halo;
  line_of_all(&p);
  const int n = size(), some = (n + 1) / 2;
  const pwx_ref lower = {.nodes = &p, .sub = {{PWX_RANGE, 1, some, 1}}};
  const pwx_ref odd = {.nodes = &p, .sub = {{PWX_RANGE, 1, n, 2}}};
  pwx_nodes_init(&half, "half", 1, (int[]){PWX_OPEN}, &lower, 0, HERE);
  if (rank() < some) {
    cut(&th, &half, 0, 10, PWX_BLOCK, 0, NULL);
    line(&a, &th, 10, 0, 1, 1);
  }
  for (int time = 0; time < 3; ++time) {
    pwx_task task = pwx_task_begin(&lower, 0, HERE);
    CHECK(task.inside == (rank() < some), "%d", task.inside);
    if (task.inside) {
      CHECK(xmp_num_nodes() == some && xmp_node_num() == rank() + 1, "%d", xmp_num_nodes());
      int executing = 1;
      pwx_reduce(NULL, PWX_SUM, PWX_INT, &executing, 1, HERE);
      CHECK(executing == some, "%d", executing);
      for (long i = a.dim[0].first; i <= a.dim[0].last; ++i) *at1(&a, i) = (double)(i + time);
      pwx_reflect(&halo, 1, (pwx_array*[]){&a}, (pwx_width[]){{1, 1, 1}}, 0, HERE);
      for (long i = a.dim[0].first - 1; i <= a.dim[0].last + 1 && a.dim[0].first <= a.dim[0].last; ++i)
        CHECK(*at1(&a, i) == (double)((i + 10) % 10 + time), "element %ld: %g", i, *at1(&a, i));
      const pwx_ref first = {.nodes = &p, .sub = {{PWX_RANGE, 1, 1, 1}}};
      pwx_task inner = pwx_task_begin(&first, 0, HERE);
      CHECK(inner.inside == (rank() == 0), "%d", inner.inside);
      pwx_task_end(&inner);
    }
    pwx_task_end(&task);
    CHECK(xmp_num_nodes() == n, "%d", xmp_num_nodes());
    pwx_task every = pwx_task_begin(&odd, 1, HERE);
    CHECK(every.inside == (rank() % 2 == 0) && xmp_num_nodes() == n, "%d", every.inside);
    pwx_task_end(&every);
  }
  /* nodes that only some nodes know: rows of nodes inside a task */
  static pwx_nodes mine;
  const pwx_ref own = {.nodes = &half, .sub = {{PWX_MINE, 0, 0, 0}}};
  pwx_nodes_init(&mine, "mine", 1, (int[]){PWX_OPEN}, &own, 0, HERE);
  const pwx_ref all_mine = {.nodes = &mine, .sub = {{PWX_ALL, 0, 0, 0}}};
  pwx_task alone = pwx_task_begin(&all_mine, 0, HERE);
  CHECK(alone.inside == (rank() < some) && mine.total == (rank() < some), "%d of %d", alone.inside,
        mine.total);
  pwx_task_end(&alone);
  /* the nodes that own a part of a template */
  cut(&t, &p, 1, 9, PWX_CYCLIC, 2, NULL);
  const pwx_ref owners = {.on_template = &t, .sub = {{PWX_RANGE, 3, 4, 1}}};
  pwx_task task = pwx_task_begin(&owners, 0, HERE);
  CHECK(task.inside == (rank() == 1 % n), "%d", task.inside);
  pwx_task_end(&task);
  if (rank() < some) pwx_array_free(&a);
}
