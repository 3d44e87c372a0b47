/* Nodes, templates, arrays, arrays bound to parameters, and the functions that describe them. */
#include "check.h"

void test_nodes(void) {
  static pwx_nodes p, q, row, column, first, again;
  line_of_all(&p);
  grid_of_all(&q);
  CHECK(p.total == size() && p.at[0] == rank() && p.ranks[rank()] == rank(), "%d at %d", p.total, p.at[0]);
  CHECK(q.size[0] * q.size[1] == size() && q.at[0] + q.size[0] * q.at[1] == rank(), "%d, %d", q.at[0],
        q.at[1]);
  const pwx_ref mine = {.nodes = &q, .sub = {{PWX_ALL, 0, 0, 0}, {PWX_MINE, 0, 0, 0}}};
  pwx_nodes_init(&row, "row", 1, (int[]){PWX_OPEN}, &mine, 0, HERE);
  CHECK(row.total == q.size[0] && row.at[0] == q.at[0] && row.ranks[0] == q.at[1] * q.size[0], "%d",
        row.total);
  const pwx_ref other = {.nodes = &q, .sub = {{PWX_RANGE, 1, 1, 1}, {PWX_ALL, 0, 0, 0}}};
  pwx_nodes_init(&column, "column", 1, (int[]){PWX_OPEN}, &other, 0, HERE);
  CHECK(column.total == q.size[1] && column.member == (q.at[0] == 0), "%d", column.member);
  pwx_nodes_init(&first, "first", 1, (int[]){1}, NULL, 0, HERE);
  CHECK(first.total == 1 && first.member == (rank() == 0) && first.at[0] == (rank() == 0 ? 0 : -1), "%d",
        first.at[0]);
  pwx_nodes_init(&again, "again", 1, (int[]){PWX_OPEN}, NULL, 1, HERE);
  CHECK(again.total == size(), "%d", again.total);
}

static void test_kinds(const pwx_nodes* p) {
  long sizes[64];
  for (long count = 1; count < 23; count += 7)
    for (int kind = PWX_BLOCK; kind <= PWX_GBLOCK; ++kind)
      for (long width = 0; width < (kind == PWX_CYCLIC ? 4 : 1); ++width) {
        static pwx_template t;
        static pwx_array a;
        memset(&t, 0, sizeof t);
        memset(&a, 0, sizeof a);
        uneven(sizes, size(), count + 1);
        cut(&t, p, 1, count + 1, (pwx_kind)kind, width, sizes);
        line(&a, &t, count, 2, 0, 0); /* the first index has no element */
        int owned = 0, local = 0;
        for (long i = 0; i < count; ++i)
          if (owns(&a, 0, i)) {
            ++owned;
            *of_line(&a, i) = (double)i;
          }
        for (long i = 0; i < count; ++i)
          if (owns(&a, 0, i)) CHECK(*of_line(&a, i) == (double)i, "kind %d, element %ld", kind, i);
        xmp_array_lsize(&a, 1, &local);
        CHECK(local == owned, "%d elements, not %d", local, owned);
        pwx_reduce(NULL, PWX_SUM, PWX_INT, &owned, 1, HERE);
        CHECK(owned == count, "kind %d: %d of %ld", kind, owned, count);
        pwx_array_free(&a);
      }
}

static void takes(void* argument, long rows, long columns, const pwx_template* t, const pwx_array* given) {
  static pwx_array v;
  pwx_bind(&v, argument, "v", sizeof(double), 2, (long[]){rows, columns}, t, (int[]){1, 0}, (long[]){0, 0},
           (long[]){1, 1}, (long[]){1, 1}, HERE);
  CHECK(v.state == given->state && v.memory == given->memory && v.ld[1] == given->ld[1], "rows %ld", rows);
}

void test_arrays(void) {
  static pwx_nodes p, q;
  static pwx_template t, same, open;
  static pwx_array a, b, c;
  line_of_all(&p);
  grid_of_all(&q);
  test_kinds(&p);
  blocks(&t, &q, (long[]){13, 9});
  blocks(&same, &q, (long[]){13, 9});
  plane(&a, &t, 9, 13, 1, 1);
  plane(&b, &t, 9, 13, 1, 1);
  const long chunk = (13 + q.size[0] - 1) / q.size[0];
  CHECK(a.ld[1] == chunk + 2, "%ld", a.ld[1]);
  pwx_array_expect(&a, 1, chunk + 2, HERE);
  for (int time = 0; time < 3; ++time) {
    takes(a.memory, 9, 13, &t, &a);
    takes(b.memory, 9, 13, &same, &b);
  }
  pwx_array_free(&a);
  memset(&a, 0, sizeof a);
  plane(&a, &t, 9, 13, 1, 1);
  takes(a.memory, 9, 13, &t, &a);
  int value = -1;
  CHECK(xmp_array_gsize(&a, 2, &value) == 0 && value == 13, "%d", value);
  CHECK(xmp_array_gcllbound(&a, 1, &value) == 0 && value == a.dim[0].first, "%d", value);
  CHECK(xmp_array_gclubound(&a, 1, &value) == 0 && value == a.dim[0].last, "%d", value);
  CHECK(xmp_array_lshadow(&a, 1, &value) == 0 && value == 1, "%d", value);
  CHECK(xmp_array_gsize(&a, 3, &value) == -1, "%d", value);
  CHECK(xmp_align_axis(&a, 1, &value) == 0 && value == 2, "%d", value);
  CHECK(xmp_nodes_index(&q, 2, &value) == 0 && value == q.at[1] + 1, "%d", value);
  CHECK(xmp_dist_format(&t, 1, &value) == 0 && value == XMP_BLOCK, "%d", value);
  if (a.dim[0].first <= a.dim[0].last) {
    CHECK(xmp_array_lcllbound(&a, 1, &value) == 0 && value == 1, "%d", value);
  }
  /* a template that is fixed later, and memory whose size is known later */
  pwx_template_open(&open, "open", 1, HERE);
  const pwx_kind kind = PWX_GBLOCK;
  pwx_distribute(&open, &p, &kind, NULL, NULL, HERE);
  long sizes[64];
  uneven(sizes, size(), 17);
  const long* all = sizes;
  pwx_template_fix(&open, (long[]){0}, (long[]){16}, &all, HERE);
  pwx_array_open(&c, "c", sizeof(double), 1, &open, (int[]){0}, (long[]){0}, (long[]){0}, (long[]){0}, HERE);
  CHECK(xmp_malloc(&c, 17) == c.memory && c.state != NULL, "%p", c.memory);
  CHECK(c.dim[0].last - c.dim[0].first + 1 == sizes[rank()], "%ld to %ld", c.dim[0].first, c.dim[0].last);
  pwx_array_free(&c);
  pwx_array_free(&b);
  pwx_array_free(&a);
  CHECK(a.state == NULL, "%p", (void*)a.state);
}
