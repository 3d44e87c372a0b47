/* gmove between distributions, coarrays, post and wait. */
#include <threads.h>

#include "check.h"

static double value(long i) { return 1 + 3.0 * (double)i; }

static void fill(const pwx_array* a) {
  for (long i = 0; i < a->dim[0].size; ++i)
    if (owns(a, 0, i)) *of_line(a, i) = value(i);
}

static void clear(const pwx_array* a) {
  for (long i = 0; i < a->dim[0].size; ++i)
    if (owns(a, 0, i)) *of_line(a, i) = -1;
}

static pwx_section part(const pwx_array* a, long first, long count, long step) {
  return (pwx_section){.array = a, .ndims = 1, .dim = {{first, count, step, 0}}};
}

static void between_distributions(void) {
  static pwx_nodes p;
  line_of_all(&p);
  long sizes[64];
  uneven(sizes, size(), 21);
  const struct {
    pwx_kind kind;
    long width;
  } cuts[] = {{PWX_BLOCK, 0}, {PWX_CYCLIC, 1}, {PWX_CYCLIC, 3}, {PWX_GBLOCK, 0}};
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      static pwx_template t, u;
      static pwx_array a, b;
      memset(&t, 0, sizeof t);
      memset(&u, 0, sizeof u);
      memset(&a, 0, sizeof a);
      memset(&b, 0, sizeof b);
      cut(&t, &p, 0, 21, cuts[from].kind, cuts[from].width, sizes);
      cut(&u, &p, 0, 21, cuts[to].kind, cuts[to].width, sizes);
      line(&a, &t, 21, 0, 0, 0);
      line(&b, &u, 20, 1, 0, 0);
      fill(&a);
      const struct {
        long first, count, step, right, right_step;
      } sections[] = {{0, 20, 1, 0, 1}, {1, 6, 3, 20, -2}, {5, 0, 1, 0, 1}, {19, 1, 1, 3, 1}};
      for (int s = 0; s < 4; ++s) {
        clear(&b);
        const pwx_section target = part(&b, sections[s].first, sections[s].count, sections[s].step);
        const pwx_section source = part(&a, sections[s].right, sections[s].count, sections[s].right_step);
        pwx_gmove(PWX_COLLECTIVE, &target, &source, HERE);
        for (long i = 0; i < 20; ++i) {
          double should = -1;
          for (long k = 0; k < sections[s].count; ++k)
            if (sections[s].first + k * sections[s].step == i)
              should = value(sections[s].right + k * sections[s].right_step);
          if (owns(&b, 0, i)) CHECK(*of_line(&b, i) == should, "%d to %d, section %d: %ld", from, to, s, i);
        }
      }
      /* to and from a local array, a scalar from an element, and a scalar to all */
      double local[21], element_value = 0;
      pwx_section all = {
          .base = local, .element_bytes = sizeof *local, .ndims = 1, .extent = {21}, .dim = {{0, 21, 1, 0}}};
      pwx_section source = part(&a, 0, 21, 1);
      pwx_barrier(NULL, HERE);
      pwx_gmove(PWX_IN, &all, &source, HERE);
      for (long i = 0; i < 21; ++i) CHECK(local[i] == value(i), "%g", local[i]);
      pwx_section scalar = {.base = &element_value, .element_bytes = sizeof element_value};
      pwx_section element = {.array = &a, .ndims = 1, .dim = {{13, 1, 1, 1}}};
      pwx_gmove(PWX_COLLECTIVE, &scalar, &element, HERE);
      CHECK(element_value == value(13), "%g", element_value);
      element_value = 77;
      pwx_section target = part(&b, 2, 3, 1);
      pwx_gmove(PWX_COLLECTIVE, &target, &scalar, HERE);
      for (long i = 2; i < 5; ++i)
        if (owns(&b, 0, i)) CHECK(*of_line(&b, i) == 77, "%g", *of_line(&b, i));
      /* only the last rank writes all of b, from what it reads of a */
      pwx_barrier(NULL, HERE);
      const pwx_ref only = {.nodes = &p, .sub = {{PWX_RANGE, size(), size(), 1}}};
      pwx_task task = pwx_task_begin(&only, 0, HERE);
      if (task.inside) {
        const pwx_section some = {.base = local,
                                  .element_bytes = sizeof *local,
                                  .ndims = 1,
                                  .extent = {21},
                                  .dim = {{0, 10, 2, 0}}};
        const pwx_section odd = part(&a, 19, 10, -2), even = part(&b, 0, 10, 2), rest = part(&b, 1, 10, 2);
        pwx_gmove(PWX_IN, &some, &odd, HERE);
        pwx_gmove(PWX_OUT, &even, &some, HERE);
        pwx_gmove(PWX_OUT, &rest, &scalar, HERE);
      }
      pwx_task_end(&task);
      pwx_barrier(NULL, HERE);
      for (long i = 0; i < 20; ++i)
        if (owns(&b, 0, i)) CHECK(*of_line(&b, i) == (i % 2 ? 77 : value(19 - i)), "%g", *of_line(&b, i));
      pwx_barrier(NULL, HERE);
      pwx_array_free(&a);
      pwx_array_free(&b);
    }
}

/* Rows become columns; and a vector of which each row of nodes has a copy. */
static void transposed(void) {
  static pwx_nodes q;
  static pwx_template t, u;
  static pwx_array a, b, v;
  grid_of_all(&q);
  blocks(&t, &q, (long[]){7, 5});
  blocks(&u, &q, (long[]){5, 7});
  plane(&a, &t, 5, 7, 1, 1);
  pwx_array_init(&b, "b", sizeof(double), 2, (long[]){5, 7}, &u, (int[]){0, 1}, (long[]){0, 0},
                 (long[]){0, 0}, (long[]){0, 0}, HERE);
  pwx_array_init(&v, "v", sizeof(double), 1, (long[]){7}, &t, (int[]){0}, (long[]){0}, (long[]){0},
                 (long[]){0}, HERE);
  for (long i = a.dim[0].first; i <= a.dim[0].last; ++i)
    for (long j = a.dim[1].first; j <= a.dim[1].last; ++j) *at2(&a, i, j) = value(i * 10 + j);
  const pwx_section target = {.array = &b, .ndims = 2, .dim = {{0, 5, 1, 0}, {0, 7, 1, 0}}};
  const pwx_section source = {.array = &a, .ndims = 2, .dim = {{0, 5, 1, 0}, {0, 7, 1, 0}}};
  pwx_gmove(PWX_COLLECTIVE, &target, &source, HERE);
  for (long i = b.dim[0].first; i <= b.dim[0].last; ++i)
    for (long j = b.dim[1].first; j <= b.dim[1].last; ++j)
      CHECK(*at2(&b, i, j) == value(i * 10 + j), "%ld %ld", i, j);
  const pwx_section copy = {.array = &v, .ndims = 1, .dim = {{0, 7, 1, 0}}};
  const pwx_section row = {.array = &a, .ndims = 2, .dim = {{3, 1, 1, 1}, {0, 7, 1, 0}}};
  pwx_gmove(PWX_COLLECTIVE, &copy, &row, HERE);
  for (long j = v.dim[0].first; j <= v.dim[0].last; ++j)
    CHECK(*at1(&v, j) == value(30 + j), "%ld: %g", j, *at1(&v, j));
  const pwx_section back = {.array = &a, .ndims = 2, .dim = {{1, 1, 1, 1}, {0, 7, 1, 0}}};
  pwx_gmove(PWX_COLLECTIVE, &back, &copy, HERE);
  if (a.dim[0].first <= 1 && 1 <= a.dim[0].last)
    for (long j = a.dim[1].first; j <= a.dim[1].last; ++j) CHECK(*at2(&a, 1, j) == value(30 + j), "%ld", j);
  pwx_array_free(&a);
  pwx_array_free(&b);
  pwx_array_free(&v);
}

/* The last rank allocates an array only when the first, which is ahead, is already writing to it. */
static void to_one_that_is_behind(void) {
  static pwx_nodes p;
  static pwx_template t;
  static pwx_array a;
  line_of_all(&p);
  cut(&t, &p, 0, 21, PWX_BLOCK, 0, NULL);
  pwx_barrier(NULL, HERE);
  if (size() > 1 && rank() == size() - 1) thrd_sleep(&(struct timespec){0, 200000000}, NULL);
  line(&a, &t, 21, 0, 0, 0);
  double ones[21];
  for (int i = 0; i < 21; ++i) ones[i] = value(i);
  const pwx_section from = {
      .base = ones, .element_bytes = sizeof *ones, .ndims = 1, .extent = {21}, .dim = {{0, 21, 1, 0}}};
  const pwx_section to = part(&a, 0, 21, 1);
  const pwx_ref first = {.nodes = &p, .sub = {{PWX_RANGE, 1, 1, 1}}};
  pwx_task task = pwx_task_begin(&first, 0, HERE);
  if (task.inside) pwx_gmove(PWX_OUT, &to, &from, HERE);
  pwx_task_end(&task);
  pwx_barrier(NULL, HERE);
  for (long i = 0; i < 21; ++i)
    if (owns(&a, 0, i)) CHECK(*of_line(&a, i) == value(i), "%ld: %g", i, *of_line(&a, i));
  pwx_array_free(&a);
}

void test_gmove(void) {
  between_distributions();
  transposed();
  to_one_that_is_behind();
}

static void post_and_wait(void) {
  static pwx_nodes p;
  line_of_all(&p);
  const int n = size(), me = rank(), next = (me + 1) % n, previous = (me + n - 1) % n;
  const pwx_ref to = {.nodes = &p, .sub = {{PWX_RANGE, next + 1, next + 1, 1}}};
  const pwx_ref from = {.nodes = &p, .sub = {{PWX_RANGE, previous + 1, previous + 1, 1}}};
  for (int time = 0; time < 40;
       ++time) { /* two tags, waited for in the other order, with a barrier between */
    pwx_post(&to, 3, HERE);
    pwx_post(&to, 4, HERE);
    pwx_barrier(NULL, HERE);
    pwx_wait(&from, 0, 4, HERE);
    pwx_wait(&from, 0, 3, HERE);
  }
  pwx_post(&to, 8, HERE);
  pwx_wait(NULL, 0, 8, HERE);
  pwx_post(&to, 9, HERE);
  pwx_wait(&from, 1, 0, HERE);
}

void test_coarrays(void) {
  static pwx_coarray x, y;
  static double mine[6][8];
  const int n = size(), me = rank(), next = (me + 1) % n, previous = (me + n - 1) % n;
  y.base = mine;
  pwx_coarray_init(&x, "x", sizeof(long), 1, (long[]){10}, HERE);
  pwx_coarray_init(&y, "y", sizeof(double), 2, (long[]){6, 8}, HERE);
  long* here = x.base;
  for (int i = 0; i < 10; ++i) here[i] = -1;
  long out[10];
  for (int i = 0; i < 10; ++i) out[i] = 100 * me + i;
  pwx_section local = {
      .base = out, .element_bytes = sizeof *out, .ndims = 1, .extent = {10}, .dim = {{0, 5, 2, 0}}};
  pwx_sync_all(HERE);
  pwx_coarray_put(&x, next, (pwx_triplet[]){{1, 5, 1, 0}}, &local, 0, HERE);
  pwx_sync_all(HERE);
  for (int i = 0; i < 10; ++i)
    CHECK(here[i] == (i >= 1 && i <= 5 ? 100 * previous + 2 * (i - 1) : -1), "%d: %ld", i, here[i]);
  pwx_section element = {.base = out, .element_bytes = sizeof *out, .ndims = 0};
  pwx_coarray_get(&element, &x, next, (pwx_triplet[]){{3, 1, 1, 1}}, 0, HERE);
  CHECK(out[0] == 100 * me + 4, "%ld", out[0]);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 8; ++j) mine[i][j] = me + 10.0 * i + 100.0 * j;
  pwx_sync_all(HERE);
  double got[3][8];
  pwx_section rows = {.base = got,
                      .element_bytes = sizeof(double),
                      .ndims = 2,
                      .extent = {3, 8},
                      .dim = {{0, 3, 1, 0}, {7, 4, -1, 0}}};
  pwx_coarray_get(&rows, &y, previous, (pwx_triplet[]){{5, 3, -2, 0}, {0, 4, 2, 0}}, 0, HERE);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      CHECK(got[i][7 - j] == previous + 10.0 * (5 - 2 * i) + 100.0 * (2 * j), "%d %d: %g", i, j,
            got[i][7 - j]);
  pwx_sync_all(HERE);
  double seven = 7;
  pwx_section scalar = {.base = &seven, .element_bytes = sizeof seven, .ndims = 0};
  pwx_coarray_put(&y, previous, (pwx_triplet[]){{0, 6, 1, 0}, {3, 1, 1, 1}}, &scalar, 0, HERE);
  pwx_sync_images(n > 2 ? 2 : 1, (int[]){next, previous}, HERE);
  for (int i = 0; i < 6; ++i)
    CHECK(mine[i][3] == 7 && mine[i][2] == me + 10.0 * i + 200, "%d: %g", i, mine[i][3]);
  post_and_wait();
}
