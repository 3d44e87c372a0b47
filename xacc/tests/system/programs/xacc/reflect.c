/* Halos: compares every element of every node, with its shadow, with the whole array. */
#include "gpu.h"

/* 1: halos of the copies on the GPU, while the host's memory has other values. */
static int acc;
static int flags(int orthogonal) { return orthogonal | (acc ? PWX_REFLECT_ACC : 0); }
static pwx_data data_of(const pwx_array* a) {
  return (pwx_data){PWX_DATA_CREATE, "a", (pwx_array*)a, NULL, 0};
}
static void to_device(const pwx_array* a) {
  const pwx_data data = data_of(a);
  if (!acc) return;
  pwx_enter_data(1, &data, PWX_QUEUE_SYNC, HERE);
  pwx_update_device(1, &data, 0, PWX_QUEUE_SYNC, HERE);
}
static void to_host(const pwx_array* a) {
  const pwx_data data = data_of(a);
  if (acc) pwx_update_host(1, &data, 0, PWX_QUEUE_SYNC, HERE);
}

static double value(long i, long j) { return 1 + 100.0 * (double)i + (double)j; }
static long wrapped(long i, long count) { return ((i % count) + count) % count; }

static void set(const pwx_array* a, double add, double everywhere) {
  for (long i = a->dim[0].first - a->dim[0].shadow[0]; i <= a->dim[0].last + a->dim[0].shadow[1]; ++i)
    for (long j = a->dim[1].first - a->dim[1].shadow[0]; j <= a->dim[1].last + a->dim[1].shadow[1]; ++j) {
      const int own =
          i >= a->dim[0].first && i <= a->dim[0].last && j >= a->dim[1].first && j <= a->dim[1].last;
      *at2(a, i, j) = everywhere != 0 ? everywhere : own ? value(i, j) + add : -1;
    }
}

static void fill(const pwx_array* a, double add) {
  set(a, add, 0);
  to_device(a);
  if (acc && pwx_gpu()) set(a, 0, -5);
}

/* Where an element is: 0 owned, 1 within the width, 2 beyond it. */
static int side(const pwx_array_dim* dim, const pwx_width* width, long i) {
  if (i >= dim->first && i <= dim->last) return 0;
  return i >= dim->first - width->lo && i <= dim->last + width->hi ? 1 : 2;
}

static void compare(const pwx_array* a, const pwx_width* w, int orthogonal, double add, const char* label) {
  to_host(a);
  if (a->dim[0].first > a->dim[0].last || a->dim[1].first > a->dim[1].last) return;
  for (long i = a->dim[0].first - a->dim[0].shadow[0]; i <= a->dim[0].last + a->dim[0].shadow[1]; ++i)
    for (long j = a->dim[1].first - a->dim[1].shadow[0]; j <= a->dim[1].last + a->dim[1].shadow[1]; ++j) {
      const int si = side(&a->dim[0], &w[0], i), sj = side(&a->dim[1], &w[1], j);
      const long m = a->dim[0].size, n = a->dim[1].size;
      const int exists = (w[0].periodic || (i >= 0 && i < m)) && (w[1].periodic || (j >= 0 && j < n));
      const int filled = si < 2 && sj < 2 && exists && !(orthogonal && si == 1 && sj == 1);
      const double right = filled || (si == 0 && sj == 0) ? value(wrapped(i, m), wrapped(j, n)) + add : -1;
      CHECK(*at2(a, i, j) == right, "%s: element %ld, %ld is %g, not %g", label, i, j, *at2(a, i, j), right);
    }
}

static void one_case(const pwx_template* t, long rows, long columns, long lo, long hi, const char* label) {
  static pwx_array a;
  memset(&a, 0, sizeof a);
  plane(&a, t, rows, columns, lo, hi);
  pwx_array* const list[] = {&a};
  const pwx_width whole[2] = {{lo, hi, 0}, {lo, hi, 0}};
  const pwx_width widths[][2] = {{{lo, hi, 1}, {lo, hi, 1}},
                                 {{lo, hi, 1}, {lo, hi, 0}},
                                 {{1, 0, 0}, {0, 1, 1}},
                                 {{0, hi, 1}, {lo, 0, 1}},
                                 {{0, 0, 0}, {0, 0, 0}}};
  for (int orthogonal = 0; orthogonal < 2; ++orthogonal) {
    static pwx_halo halo;
    fill(&a, 0);
    pwx_reflect(&halo, 1, list, NULL, flags(orthogonal), HERE);
    compare(&a, whole, orthogonal, 0, label);
    for (int w = 0; w < 5; ++w) /* one reflect whose widths change */
      for (int time = 0; time < 2; ++time) {
        fill(&a, w + time);
        pwx_reflect(&halo, 1, list, widths[w], flags(orthogonal), HERE);
        compare(&a, widths[w], orthogonal, w + time, label);
      }
  }
  pwx_array_free(&a);
}

/* Back: each owner adds the copies of its elements from halos, those at corners unless it is orthogonal. */
static void reduced_shadow(pwx_array* a, const pwx_width* periodic, int orthogonal) {
  for (long i = a->dim[0].first - 1; i <= a->dim[0].last + 1; ++i)
    for (long j = a->dim[1].first - 1; j <= a->dim[1].last + 1; ++j) *at2(a, i, j) = 1;
  pwx_reduce_shadow(a, PWX_DOUBLE, periodic, orthogonal ? PWX_REFLECT_ORTHOGONAL : 0, HERE);
  double sum = 0, cells = 0;
  for (long i = a->dim[0].first; i <= a->dim[0].last; ++i)
    for (long j = a->dim[1].first; j <= a->dim[1].last; ++j) sum += *at2(a, i, j);
  const long m = a->dim[0].last - a->dim[0].first + 1, n = a->dim[1].last - a->dim[1].first + 1;
  if (m > 0 && n > 0) cells = (double)((m + 2) * (n + 2) - (orthogonal ? 4 : 0));
  pwx_reduce(NULL, PWX_SUM, PWX_DOUBLE, &sum, 1, HERE);
  pwx_reduce(NULL, PWX_SUM, PWX_DOUBLE, &cells, 1, HERE);
  CHECK(sum == cells, "%g, not %g", sum, cells);
}

void test_reflect(void) {
  static pwx_nodes p, q;
  static pwx_template even, odd, thin, rows_only, uneven_rows;
  grid_of_all(&q);
  line_of_all(&p);
  blocks(&even, &q, (long[]){16, 8});
  one_case(&even, 8, 16, 1, 1, "even");
  blocks(&odd, &q, (long[]){13, 9});
  one_case(&odd, 9, 13, 1, 1, "odd");
  one_case(&odd, 9, 13, 2, 1, "two below");
  blocks(&thin, &q, (long[]){3, 2}); /* shadows reach beyond neighbours, and some nodes own nothing */
  one_case(&thin, 2, 3, 2, 2, "thin");
  /* undistributed columns, rows in uneven parts */
  long sizes[64];
  uneven(sizes, size(), 11);
  const long* gblock[] = {NULL, sizes};
  pwx_template_init(&uneven_rows, "t", 2, (long[]){0, 0}, (long[]){4, 10}, HERE);
  pwx_distribute(&uneven_rows, &p, (pwx_kind[]){PWX_DUPLICATED, PWX_GBLOCK}, NULL, gblock, HERE);
  one_case(&uneven_rows, 11, 5, 2, 3, "gblock");
  pwx_template_init(&rows_only, "t", 2, (long[]){0, 0}, (long[]){4, 10}, HERE);
  pwx_distribute(&rows_only, &p, (pwx_kind[]){PWX_DUPLICATED, PWX_BLOCK}, NULL, NULL, HERE);
  one_case(&rows_only, 11, 5, 1, 2, "rows");
}

static void structs(const pwx_nodes* q) {
  typedef struct spinor {
    double v[4][3][2];
  } spinor;
  static pwx_template t;
  static pwx_array a;
  blocks(&t, q, (long[]){6, 6});
  /* undistributed, distributed, distributed, undistributed: as the field of a lattice */
  pwx_array_init(&a, "u", sizeof(spinor), 4, (long[]){2, 6, 6, 3}, &t, (int[]){-1, 1, 0, -1},
                 (long[]){0, 0, 0, 0}, (long[]){0, 1, 1, 0}, (long[]){0, 1, 1, 0}, HERE);
  const long* ld = a.ld;
  spinor* u = a.memory;
  const long b1 = a.dim[1].base, b2 = a.dim[2].base;
#define U(m, i, j, k) u[(((m) * ld[1] + (i) - b1) * ld[2] + (j) - b2) * ld[3] + (k)].v[3][2][1]
  for (long m = 0; m < 2; ++m)
    for (long i = a.dim[1].first; i <= a.dim[1].last; ++i)
      for (long j = a.dim[2].first; j <= a.dim[2].last; ++j)
        for (long k = 0; k < 3; ++k) U(m, i, j, k) = (double)(1000 * m + 100 * i + 10 * j + k);
  static pwx_halo halo;
  const pwx_width widths[] = {{0, 0, 0}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
  to_device(&a);
  pwx_reflect(&halo, 1, (pwx_array*[]){&a}, widths, flags(0), HERE);
  to_host(&a);
  const int some = a.dim[1].first <= a.dim[1].last && a.dim[2].first <= a.dim[2].last;
  for (long m = 0; m < 2 && some; ++m)
    for (long i = a.dim[1].first - 1; i <= a.dim[1].last + 1; ++i)
      for (long j = a.dim[2].first - 1; j <= a.dim[2].last + 1; ++j)
        for (long k = 0; k < 3; ++k) {
          const double right = (double)(1000 * m + 100 * wrapped(i, 6) + 10 * wrapped(j, 6) + k);
          CHECK(U(m, i, j, k) == right, "%ld %ld %ld %ld: %g", m, i, j, k, U(m, i, j, k));
        }
  pwx_array_free(&a);
}

static void full_shadow(void) {
  static pwx_nodes p;
  static pwx_template t;
  static pwx_array a;
  static pwx_halo halo;
  line_of_all(&p);
  cut(&t, &p, 0, 11, PWX_BLOCK, 0, NULL);
  line(&a, &t, 11, 0, -1, -1);
  for (long i = a.dim[0].first; i <= a.dim[0].last; ++i) *at1(&a, i) = (double)i;
  to_device(&a);
  pwx_reflect(&halo, 1, (pwx_array*[]){&a}, NULL, flags(0), HERE);
  to_host(&a);
  for (long i = 0; i < 11 && a.dim[0].first <= a.dim[0].last; ++i)
    CHECK(*at1(&a, i) == (double)i, "%g", *at1(&a, i));
  pwx_array_free(&a);
}

void test_reflect_again(void) {
  static pwx_nodes q;
  static pwx_template t;
  static pwx_array a, b;
  static pwx_halo halo, split, async, loop;
  grid_of_all(&q);
  blocks(&t, &q, (long[]){12, 10});
  plane(&a, &t, 10, 12, 1, 1);
  plane(&b, &t, 10, 12, 1, 1);
  pwx_array* const both[] = {&a, &b};
  const pwx_width whole[2] = {{1, 1, 0}, {1, 1, 0}}, periodic[2] = {{1, 1, 1}, {1, 1, 1}};
  fill(&a, 0);
  fill(&b, 7);
  pwx_reflect(&halo, 2, both, NULL, flags(0), HERE);
  compare(&a, whole, 0, 0, "two arrays");
  compare(&b, whole, 0, 7, "two arrays");
  for (int step = 0; step < 20; ++step) { /* two arrays in turn, as in a loop that swaps them */
    pwx_array* turn = step % 2 == 0 ? &a : &b;
    fill(turn, step);
    pwx_reflect(&loop, 1, &turn, periodic, flags(0), HERE);
    compare(turn, periodic, 0, step, "in turn");
  }
  fill(&a, 1);
  pwx_reflect_start(&split, 1, both, periodic, flags(1), HERE);
  pwx_reflect_wait(1, both, HERE);
  compare(&a, periodic, 1, 1, "in two parts");
  fill(&a, 4);
  fill(&b, 5);
  pwx_reflect_start(&split, 1, both, periodic, flags(0), HERE);
  pwx_reflect_start(&halo, 1, both + 1, NULL, flags(0), HERE);
  pwx_reflect_wait(1, both + 1, HERE);
  compare(&b, whole, 0, 5, "waited for");
  pwx_reflect_wait(2, both, HERE);
  compare(&a, periodic, 0, 4, "waited for");
  fill(&a, 2);
  fill(&b, 3);
  pwx_reflect_async(&async, 1, both, NULL, flags(0), 5, HERE);
  pwx_reflect_async(&halo, 1, both + 1, NULL, flags(0), 5, HERE);
  pwx_wait_async(5, HERE);
  pwx_wait_async(5, HERE);
  compare(&a, whole, 0, 2, "async");
  compare(&b, whole, 0, 3, "async");
  pwx_reflect_init(2, both, periodic, flags(0), HERE);
  for (int step = 0; step < 3; ++step) {
    fill(&a, step);
    fill(&b, -step);
    pwx_reflect_do(2, both, HERE);
    compare(&a, periodic, 0, step, "reflect_do");
    compare(&b, periodic, 0, -step, "reflect_do");
  }
  pwx_array_free(&a); /* allocated again: the same reflect, another array */
  memset(&a, 0, sizeof a);
  plane(&a, &t, 10, 12, 1, 1);
  fill(&a, 9);
  pwx_reflect(&halo, 2, both, NULL, flags(0), HERE);
  compare(&a, whole, 0, 9, "allocated again");
  for (int orthogonal = 0; orthogonal < 2; ++orthogonal) reduced_shadow(&a, periodic, orthogonal);
  pwx_array_free(&a);
  pwx_array_free(&b);
  structs(&q);
  full_shadow();
}

void test_gpu_reflect(void) {
  acc = 1;
  test_reflect();
  test_reflect_again();
  acc = 0;
}
