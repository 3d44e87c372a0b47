/* Functions for loops of `peerway cc`: they compute which values of an index a node owns. All are inline,
 * so that a loop's bounds take a few instructions. Programs do not include this header themselves. */
#ifndef PEERWAY_XACC_LOOPS_H
#define PEERWAY_XACC_LOOPS_H

#include <limits.h>

#include "runtime.h"

/* Precedes functions that loops on a device call, too; OpenACC compilers need it. */
#ifndef PWX_ROUTINE
#define PWX_ROUTINE
#endif

/* The values of a loop's index that this node owns, both included; empty if first > last. */
typedef struct pwx_span {
  long first, last;
} pwx_span;

/* Checks a template that is fixed later, before a loop asks what a node owns of it. */
static inline void pwx_need_template(const pwx_template* t, const pwx_where* where) {
  if (!t->fixed) pwx_error(where, "template %s is used here before it is fixed", t->name);
}
/* Checks an array of such a template, at the beginning of a function that uses it or after the template is
 * fixed. */
static inline void pwx_need_array(const pwx_array* a, const char* name, const pwx_where* where) {
  if (a->state == NULL)
    pwx_error(
        where,
        "%s is used here, but its template is not fixed when this function begins, nor by what it calls "
        "before; fix it earlier",
        name);
}

/* The values for which value plus `offset` is owned, in a dimension of a template that is not cyclic. */
PWX_ROUTINE static inline pwx_span pwx_owned(const pwx_template* t, int dim, long offset) {
  const pwx_span span = {t->dim[dim].owned_first - offset, t->dim[dim].owned_last - offset};
  return span;
}

/* The value for which value plus `offset` is this node's number, counted from 1; empty on a rank that is
 * not a member. */
PWX_ROUTINE static inline pwx_span pwx_owned_node(const pwx_nodes* p, int dim, long offset) {
  const long at = (long)p->at[dim] + 1 - offset;
  const pwx_span span = {at, p->member ? at : at - 1};
  return span;
}

PWX_ROUTINE static inline int pwx_is_node(const pwx_nodes* p, int dim, long number) {
  return p->member && p->at[dim] + 1 == number;
}

/* The values of a loop from `first` to `last` that this node owns. */
PWX_ROUTINE static inline pwx_span pwx_local_span(pwx_span owned, long first, long last) {
  const pwx_span span = {owned.first > first ? owned.first : first, owned.last < last ? owned.last : last};
  return span;
}
/* The span extended by `lower` and `upper` values, or shortened where these are negative; it stays within
 * `first` to `last` unless `unbound`. An empty span stays empty. */
PWX_ROUTINE static inline pwx_span pwx_expanded(pwx_span own, long lower, long upper, int unbound, long first,
                                                long last) {
  const pwx_span more = {own.first - lower, own.last + upper};
  if (own.first > own.last) return own;
  return unbound ? more : pwx_local_span(more, first, last);
}
/* The span from the first value of both to the last. */
PWX_ROUTINE static inline pwx_span pwx_hull(pwx_span a, pwx_span b) {
  const pwx_span hull = {a.first < b.first ? a.first : b.first, a.last > b.last ? a.last : b.last};
  return a.first > a.last ? b : b.first > b.last ? a : hull;
}

PWX_ROUTINE static inline int pwx_is_in(pwx_span span, long i) { return span.first <= i && i <= span.last; }

/* For a loop upwards from `first` by `step`: its first value in the span. */
PWX_ROUTINE static inline long pwx_first(pwx_span span, long first, long step) {
  return first >= span.first ? first : first + (span.first - first + step - 1) / step * step;
}

/* The bounds of `i < last` and `i <= last`. */
PWX_ROUTINE static inline long pwx_below(pwx_span span, long last) {
  return last <= span.last ? last : span.last + 1;
}
PWX_ROUTINE static inline long pwx_up_to(pwx_span span, long last) {
  return last <= span.last ? last : span.last;
}

/* For a loop downwards from `first` by `step`: its first value in the span. */
PWX_ROUTINE static inline long pwx_first_down(pwx_span span, long first, long step) {
  return first <= span.last ? first : first - (first - span.last + step - 1) / step * step;
}

/* The bounds of `i > last` and `i >= last`. */
PWX_ROUTINE static inline long pwx_above(pwx_span span, long last) {
  return last >= span.first ? last : span.first - 1;
}
PWX_ROUTINE static inline long pwx_down_to(pwx_span span, long last) {
  return last >= span.first ? last : span.first;
}

/* Blocks of `width` values, distributed cyclically over `parts` nodes; this node has number `at`. */
typedef struct pwx_cycle {
  long lower, upper, width, parts, at;
} pwx_cycle;

PWX_ROUTINE static inline pwx_cycle pwx_cycle_of(const pwx_template* t, int dim, long offset) {
  const pwx_template_dim* d = &t->dim[dim];
  const pwx_cycle cycle = {d->first - offset, d->last - offset, d->width, d->parts, d->at};
  return cycle;
}

/* The number of values below `end` that this node owns. */
PWX_ROUTINE static inline long pwx_before(pwx_cycle cycle, long end) {
  const long from = end > cycle.upper + 1 ? cycle.upper + 1 - cycle.lower : end - cycle.lower;
  const long round = cycle.width * cycle.parts;
  const long rest = from % round - cycle.at * cycle.width;
  if (from <= 0 || cycle.at < 0) return 0;
  return from / round * cycle.width + (rest < 0 ? 0 : rest > cycle.width ? cycle.width : rest);
}

/* The value number `count` of those that this node owns. */
PWX_ROUTINE static inline long pwx_at(pwx_cycle cycle, long count) {
  return cycle.lower + (count / cycle.width * cycle.parts + cycle.at) * cycle.width + count % cycle.width;
}

/* The place in this node's memory of a value that it owns. */
PWX_ROUTINE static inline long pwx_local(pwx_cycle cycle, long i) {
  const long u = i - cycle.lower;
  return u / (cycle.width * cycle.parts) * cycle.width + u % cycle.width;
}

/* Does this node own index `i` of a dimension of a template? */
PWX_ROUTINE static inline int pwx_owns(const pwx_template* t, int dim, long i) {
  const pwx_template_dim* d = &t->dim[dim];
  if (d->kind != PWX_CYCLIC) return d->owned_first <= i && i <= d->owned_last;
  return d->at >= 0 && d->first <= i && i <= d->last && (i - d->first) / d->width % d->parts == d->at;
}

/* The place of element `i` of a dimension in a node's memory; an error if the node does not have it. With
 * `end` 1, the place just after the last element is allowed, too. */
static inline long pwx_in_memory(const pwx_array* a, int d, long i, int end, const char* file, int line) {
  const pwx_array_dim* dim = &a->dim[d];
  const long at = (long)((unsigned long)i - (unsigned long)dim->base);
  if (__builtin_expect((unsigned long)at >= (unsigned long)(dim->held + end), 0))
    pwx_not_in_memory(a, d, i, file, line);
  return at;
}
/* The same for a cyclic dimension. */
static inline long pwx_in_cycle(const pwx_array* a, int d, long i, const char* file, int line) {
  const pwx_array_dim* dim = &a->dim[d];
  if (dim->held == 0 || i < 0 || i >= dim->size || !pwx_owns(a->on, dim->template_dim, i + dim->offset))
    pwx_not_in_memory(a, d, i, file, line);
  return pwx_cyclic_local(a, d, i);
}
/* Subscripts that are not known to be in memory. As with assert(), they are not checked if NDEBUG is
 * defined. */
#if defined(NDEBUG)
#define PWX_IN(a, d, ...) ((__VA_ARGS__) - a##__x.dim[d].base)
#define PWX_IN_OR_END PWX_IN
#define PWX_IN_CYCLE(a, d, ...) pwx_cyclic_local(&a##__x, d, __VA_ARGS__)
#else
#define PWX_IN(a, d, ...) pwx_in_memory(&a##__x, d, (__VA_ARGS__), 0, __FILE__, __LINE__)
#define PWX_IN_OR_END(a, d, ...) pwx_in_memory(&a##__x, d, (__VA_ARGS__), 1, __FILE__, __LINE__)
#define PWX_IN_CYCLE(a, d, ...) pwx_in_cycle(&a##__x, d, (__VA_ARGS__), __FILE__, __LINE__)
#endif

/* Identities of max and min. */
#define PWX_CHAR_LOWEST CHAR_MIN
#define PWX_CHAR_HIGHEST CHAR_MAX
#define PWX_SIGNED_CHAR_LOWEST SCHAR_MIN
#define PWX_SIGNED_CHAR_HIGHEST SCHAR_MAX
#define PWX_UNSIGNED_CHAR_LOWEST 0
#define PWX_UNSIGNED_CHAR_HIGHEST UCHAR_MAX
#define PWX_SHORT_LOWEST SHRT_MIN
#define PWX_SHORT_HIGHEST SHRT_MAX
#define PWX_UNSIGNED_SHORT_LOWEST 0
#define PWX_UNSIGNED_SHORT_HIGHEST USHRT_MAX
#define PWX_INT_LOWEST INT_MIN
#define PWX_INT_HIGHEST INT_MAX
#define PWX_UNSIGNED_INT_LOWEST 0
#define PWX_UNSIGNED_INT_HIGHEST UINT_MAX
#define PWX_LONG_LOWEST LONG_MIN
#define PWX_LONG_HIGHEST LONG_MAX
#define PWX_UNSIGNED_LONG_LOWEST 0
#define PWX_UNSIGNED_LONG_HIGHEST ULONG_MAX
#define PWX_LONG_LONG_LOWEST LLONG_MIN
#define PWX_LONG_LONG_HIGHEST LLONG_MAX
#define PWX_UNSIGNED_LONG_LONG_LOWEST 0
#define PWX_UNSIGNED_LONG_LONG_HIGHEST ULLONG_MAX
#define PWX_BOOL_LOWEST 0
#define PWX_BOOL_HIGHEST 1
#define PWX_FLOAT_LOWEST (-__builtin_inff())
#define PWX_FLOAT_HIGHEST __builtin_inff()
#define PWX_DOUBLE_LOWEST (-__builtin_inf())
#define PWX_DOUBLE_HIGHEST __builtin_inf()
#define PWX_LONG_DOUBLE_LOWEST (-__builtin_infl())
#define PWX_LONG_DOUBLE_HIGHEST __builtin_infl()

#endif
