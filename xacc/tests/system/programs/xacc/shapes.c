/* Nodes, templates and arrays that the programs share. */
#include "check.h"

int failures, checks;

void line_of_all(pwx_nodes* p) { pwx_nodes_init(p, "p", 1, (int[]){PWX_OPEN}, NULL, 0, HERE); }

void grid_of_all(pwx_nodes* p) {
  int rows = 1;
  for (int n = 1; n * n <= size(); ++n)
    if (size() % n == 0) rows = n;
  pwx_nodes_init(p, "q", 2, (int[]){PWX_OPEN, rows}, NULL, 0, HERE);
}

void cut(pwx_template* t, const pwx_nodes* p, long first, long count, pwx_kind kind, long width,
         const long* sizes) {
  pwx_template_init(t, "t", 1, &first, (long[]){first + count - 1}, HERE);
  pwx_distribute(t, p, &kind, &width, &sizes, HERE);
}

void blocks(pwx_template* t, const pwx_nodes* p, const long* sizes) {
  const pwx_kind kinds[] = {PWX_BLOCK, PWX_BLOCK, PWX_BLOCK};
  long last[PWX_MAX_DIMS];
  for (int d = 0; d < p->ndims; ++d) last[d] = sizes[d] - 1;
  pwx_template_init(t, "t", p->ndims, (long[]){0, 0, 0}, last, HERE);
  pwx_distribute(t, p, kinds, NULL, NULL, HERE);
}

void uneven(long* sizes, int parts, long count) {
  for (int part = 0; part < parts; ++part) sizes[part] = 0;
  for (int part = 0; part < parts && count > 0; part += parts > 3 ? 2 : 1, --count) sizes[part] = 1;
  sizes[parts / 2] += count;
}

void line(pwx_array* a, const pwx_template* t, long count, long offset, long lo, long hi) {
  pwx_array_init(a, "a", sizeof(double), 1, &count, t, (int[]){0}, &offset, &lo, &hi, HERE);
}

void plane(pwx_array* a, const pwx_template* t, long rows, long columns, long lo, long hi) {
  pwx_array_init(a, "a", sizeof(double), 2, (long[]){rows, columns}, t, (int[]){1, 0}, (long[]){0, 0},
                 (long[]){lo, lo}, (long[]){hi, hi}, HERE);
}

int owns(const pwx_array* a, int d, long i) {
  int index[PWX_MAX_DIMS] = {0};
  index[d] = (int)i;
  if (a->dim[d].template_dim < 0) return 1;
  return xmp_array_owner((void*)a, a->ndims, index, d + 1) == a->on->dim[a->dim[d].template_dim].at + 1;
}

double* of_line(const pwx_array* a, long i) {
  return at1(a, a->on->dim[0].kind == PWX_CYCLIC ? pwx_cyclic_local(a, 0, i) : i);
}
