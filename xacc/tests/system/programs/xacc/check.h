/* Shared by the programs of test_xacc_runtime.py. A scenario compares every element that it can reach with
 * the sequential value, and reports differences. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peerway/xacc/runtime.h"
#include "peerway/xacc/xmp.h"

#define HERE (&(pwx_where){__FILE__, __LINE__})

extern int failures, checks;

#define CHECK(condition, ...)                                                                        \
  do {                                                                                               \
    ++checks;                                                                                        \
    if (!(condition) && ++failures <= 10) {                                                          \
      fprintf(stderr, "%s:%d: rank %d of %d: %s: ", __FILE__, __LINE__, rank(), size(), #condition); \
      fprintf(stderr, __VA_ARGS__);                                                                  \
      fputc('\n', stderr);                                                                           \
    }                                                                                                \
  } while (0)

static inline int rank(void) { return xmp_all_node_num() - 1; }
static inline int size(void) { return xmp_all_num_nodes(); }

/* All processes as nodes in one dimension, or in two: as many rows as fit into the square root. */
void line_of_all(pwx_nodes* p);
void grid_of_all(pwx_nodes* p);

/* A template in one dimension from `first` on, with the `sizes` of gblock. */
void cut(pwx_template* t, const pwx_nodes* p, long first, long count, pwx_kind kind, long width,
         const long* sizes);
/* A template with as many dimensions as the nodes, all block, with sizes in Fortran order. */
void blocks(pwx_template* t, const pwx_nodes* p, const long* sizes);
/* gblock sizes that differ most: one node has most, and with several nodes one has nothing. */
void uneven(long* sizes, int parts, long count);

/* doubles */
void line(pwx_array* a, const pwx_template* t, long count, long offset, long lo, long hi);
void plane(pwx_array* a, const pwx_template* t, long rows, long columns, long lo, long hi);
static inline double* at1(const pwx_array* a, long i) { return (double*)a->memory + (i - a->dim[0].base); }
static inline double* at2(const pwx_array* a, long i, long j) {
  return (double*)a->memory + (i - a->dim[0].base) * a->ld[1] + (j - a->dim[1].base);
}
double* of_line(const pwx_array* a, long i); /* also cyclic */
int owns(const pwx_array* a, int d, long i);

void test_nodes(void);
void test_arrays(void);
void test_reflect(void);
void test_reflect_again(void);
void test_values(void);
void test_tasks(void);
void test_gmove(void);
void test_coarrays(void);

#endif
