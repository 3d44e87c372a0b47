/* What the C that `peerway fc` generates beside a Fortran file needs: values that come as descriptors of
 * ISO_Fortran_binding.h say their type and size themselves. A program does not include this itself. */
#ifndef PEERWAY_XACC_FORTRAN_H
#define PEERWAY_XACC_FORTRAN_H

#include <ISO_Fortran_binding.h>
#include <stdlib.h>
#include <string.h>

#include "loops.h"

/* Of xmp.h, whose other functions a program in Fortran may have as its own. */
PWX_API void xmp_transpose(void* to, void* from, int may_change_from);
PWX_API void xmp_pack(void* vector, void* from, void* mask);
PWX_API void xmp_unpack(void* to, void* vector, void* mask);
PWX_API int xmpc_this_image(void);

#define PWX_UNUSED __attribute__((unused)) static

/* ---- types ---- */

/* The kinds of a descriptor's type, as gfortran's and Intel's ISO_Fortran_binding.h have them in the low byte
 * of intrinsic types. */
PWX_UNUSED int pwx_f_is(const CFI_cdesc_t* value, int kind) { return (value->type & CFI_type_mask) == kind; }

/* The type of a value for a reduction; logicals are integers of 0 and 1. */
PWX_UNUSED pwx_type pwx_f_type(const CFI_cdesc_t* value, pwx_op op, const char* name,
                               const pwx_where* where) {
  const int bits =
      op == PWX_BIT_AND || op == PWX_BIT_OR || op == PWX_BIT_XOR || op == PWX_AND || op == PWX_OR;
  const int is_logical = pwx_f_is(value, CFI_type_Bool & CFI_type_mask);
  if (pwx_f_is(value, CFI_type_int & CFI_type_mask) || is_logical) {
    if (is_logical != (op == PWX_AND || op == PWX_OR) && !(is_logical && op == PWX_BIT_XOR))
      pwx_error(where, "this reduction is not defined for %s, which is %s", name,
                is_logical ? "logical" : "an integer");
    switch (value->elem_len) {
      case 1:
        return PWX_SIGNED_CHAR;
      case 2:
        return PWX_SHORT;
      case 4:
        return PWX_INT;
      case 8:
        return PWX_LONG;
    }
  }
  if (bits) pwx_error(where, "this reduction is not defined for the type of %s", name);
  if (pwx_f_is(value, CFI_type_double & CFI_type_mask)) {
    if (value->elem_len == 4) return PWX_FLOAT;
    if (value->elem_len == 8) return PWX_DOUBLE;
    if (value->type == CFI_type_long_double) return PWX_LONG_DOUBLE;
  }
  if (pwx_f_is(value, CFI_type_double_Complex & CFI_type_mask) && op != PWX_MAX && op != PWX_MIN) {
    if (value->elem_len == 8) return PWX_FLOAT_COMPLEX;
    if (value->elem_len == 16) return PWX_DOUBLE_COMPLEX;
  }
  pwx_error(where, "no reduction is defined for the type of %s, whose elements have %zu bytes", name,
            value->elem_len);
}

/* gfortran gives an empty section an extent below 0. */
PWX_UNUSED long pwx_f_extent(const CFI_cdesc_t* value, int d) {
  return value->dim[d].extent < 0 ? 0 : (long)value->dim[d].extent;
}

PWX_UNUSED size_t pwx_f_count(const CFI_cdesc_t* value) {
  size_t count = 1;
  for (int d = 0; d < value->rank; ++d) count *= (size_t)pwx_f_extent(value, d);
  return count;
}

/* The array of sizes of gblock, which must be of default integers. */
PWX_UNUSED const int* pwx_f_sizes(const CFI_cdesc_t* sizes, long count, const pwx_where* where) {
  if (!pwx_f_is(sizes, CFI_type_int & CFI_type_mask) || sizes->elem_len != sizeof(int) || sizes->rank != 1)
    pwx_error(where, "the sizes of gblock must be an array of integer(4) with one dimension");
  if (sizes->dim[0].extent < count)
    pwx_error(where, "gblock has %ld sizes for %ld nodes", (long)sizes->dim[0].extent, count);
  return sizes->base_addr;
}

/* ---- reductions of loops ---- */

/* What variables had before a loop, the last one first. */
typedef struct pwx_f_before {
  struct pwx_f_before* outer;
  max_align_t values[];
} pwx_f_before;
PWX_UNUSED pwx_f_before* pwx_f_befores;

#define PWX_F_EACH(T, C)                                                   \
  for (size_t i = 0; i < count; ++i) {                                     \
    T *const a = (T*)values + i, b = before == NULL ? 0 : ((T*)before)[i]; \
    C;                                                                     \
  }
#define PWX_F_NUMBERS(M, C)  \
  case PWX_SIGNED_CHAR:      \
    M(signed char, C) break; \
  case PWX_SHORT:            \
    M(short, C) break;       \
  case PWX_INT:              \
    M(int, C) break;         \
  case PWX_LONG:             \
    M(long, C) break;
#define PWX_F_REALS(M, C) \
  case PWX_FLOAT:         \
    M(float, C) break;    \
  case PWX_DOUBLE:        \
    M(double, C) break;   \
  case PWX_LONG_DOUBLE:   \
    M(long double, C) break;
#define PWX_F_COMPLEX(M, C)     \
  case PWX_FLOAT_COMPLEX:       \
    M(float _Complex, C) break; \
  case PWX_DOUBLE_COMPLEX:      \
    M(double _Complex, C) break;
#define PWX_F_OF_ALL(C)                                                                                   \
  switch (type) {                                                                                         \
    PWX_F_NUMBERS(PWX_F_EACH, C) PWX_F_REALS(PWX_F_EACH, C) PWX_F_COMPLEX(PWX_F_EACH, C) default : break; \
  }                                                                                                       \
  break
#define PWX_F_OF_REALS(C)                                                                    \
  switch (type) { PWX_F_NUMBERS(PWX_F_EACH, C) PWX_F_REALS(PWX_F_EACH, C) default : break; } \
  break
#define PWX_F_OF_NUMBERS(C)                                       \
  switch (type) { PWX_F_NUMBERS(PWX_F_EACH, C) default : break; } \
  break

#define PWX_F_EXTREME(REAL, NUMBER)                                          \
  switch (type) {                                                            \
    PWX_F_REALS(PWX_F_EACH, (void)b; *a = REAL)                              \
    case PWX_SIGNED_CHAR:                                                    \
      PWX_F_EACH(signed char, (void)b; *a = PWX_SIGNED_CHAR_##NUMBER) break; \
    case PWX_SHORT:                                                          \
      PWX_F_EACH(short, (void)b; *a = PWX_SHORT_##NUMBER) break;             \
    case PWX_INT:                                                            \
      PWX_F_EACH(int, (void)b; *a = PWX_INT_##NUMBER) break;                 \
    case PWX_LONG:                                                           \
      PWX_F_EACH(long, (void)b; *a = PWX_LONG_##NUMBER) break;               \
    default:                                                                 \
      break;                                                                 \
  }                                                                          \
  break

/* The neutral element of an operator. */
PWX_UNUSED void pwx_f_neutral(pwx_op op, pwx_type type, void* values, size_t count) {
  const void* const before = NULL;
  switch (op) {
    case PWX_PRODUCT:
      PWX_F_OF_ALL((void)b; *a = 1);
    case PWX_AND:
      PWX_F_OF_NUMBERS((void)b; *a = 1);
    case PWX_BIT_AND:
      PWX_F_OF_NUMBERS((void)b; *a = -1);
    case PWX_MAX:
      PWX_F_EXTREME(-__builtin_inff(), LOWEST);
    case PWX_MIN:
      PWX_F_EXTREME(__builtin_inff(), HIGHEST);
    default:
      PWX_F_OF_ALL((void)b; *a = 0);
  }
}

/* The values from before a loop join its result. */
PWX_UNUSED void pwx_f_join(pwx_op op, pwx_type type, void* values, const void* before, size_t count) {
  switch (op) {
    case PWX_PRODUCT:
      PWX_F_OF_ALL(*a *= b);
    case PWX_AND:
      PWX_F_OF_NUMBERS(*a = *a && b);
    case PWX_OR:
      PWX_F_OF_NUMBERS(*a = *a || b);
    case PWX_BIT_AND:
      PWX_F_OF_NUMBERS(*a &= b);
    case PWX_BIT_OR:
      PWX_F_OF_NUMBERS(*a |= b);
    case PWX_BIT_XOR:
      PWX_F_OF_NUMBERS(*a ^= b);
    case PWX_MAX:
      PWX_F_OF_REALS(*a = b > *a ? b : *a);
    case PWX_MIN:
      PWX_F_OF_REALS(*a = b < *a ? b : *a);
    default:
      PWX_F_OF_ALL(*a += b);
  }
}

PWX_UNUSED void pwx_f_reduction_begin(pwx_op op, const CFI_cdesc_t* value, const char* name,
                                      const pwx_where* where) {
  const size_t count = pwx_f_count(value), bytes = count * value->elem_len;
  pwx_f_before* const before = malloc(sizeof(pwx_f_before) + bytes);
  if (before == NULL) pwx_error(where, "there is no memory for the %zu bytes of %s", bytes, name);
  before->outer = pwx_f_befores;
  memcpy(before->values, value->base_addr, bytes);
  pwx_f_befores = before;
  pwx_f_neutral(op, pwx_f_type(value, op, name, where), value->base_addr, count);
}
PWX_UNUSED void pwx_f_reduction_end(const pwx_ref* on, pwx_op op, const CFI_cdesc_t* value, const char* name,
                                    const pwx_where* where) {
  const pwx_type type = pwx_f_type(value, op, name, where);
  pwx_f_before* const before = pwx_f_befores;
  pwx_reduce(on, op, type, value->base_addr, pwx_f_count(value), where);
  pwx_f_join(op, type, value->base_addr, before->values, pwx_f_count(value));
  pwx_f_befores = before->outer;
  free(before);
}

PWX_UNUSED void pwx_f_reduce(const pwx_ref* on, pwx_op op, const CFI_cdesc_t* value, const char* name,
                             const pwx_where* where) {
  pwx_reduce(on, op, pwx_f_type(value, op, name, where), value->base_addr, pwx_f_count(value), where);
}
PWX_UNUSED void pwx_f_bcast(const pwx_ref* on, const pwx_ref* from, const CFI_cdesc_t* value,
                            const pwx_where* where) {
  pwx_bcast(on, from, value->base_addr, pwx_f_count(value) * value->elem_len, where);
}

/* ---- coarrays ---- */

PWX_UNUSED void pwx_f_co_reduce(pwx_op op, const CFI_cdesc_t* value, const char* name,
                                const pwx_where* where) {
  pwx_co_reduce(op, pwx_f_type(value, op, name, where), value->base_addr, pwx_f_count(value), where);
}

/* A part of a distributed array can be a coarray where it has one shape on all images. */
PWX_UNUSED void pwx_f_alike(const CFI_cdesc_t* value, const char* name, const pwx_where* where) {
  long most[2 * CFI_MAX_RANK]; /* of each extent, and of its negative */
  for (int d = 0; d < value->rank; ++d) {
    most[2 * d] = (long)value->dim[d].extent;
    most[2 * d + 1] = -most[2 * d];
  }
  pwx_co_reduce(PWX_MAX, PWX_LONG, most, 2 * (size_t)value->rank, where);
  for (int d = 0; d < value->rank; ++d)
    if (most[2 * d] != -most[2 * d + 1])
      pwx_error(where,
                "local_alias %s: parts have %ld to %ld elements in dimension %d, but a coarray has one "
                "shape on all images",
                name, -most[2 * d + 1], most[2 * d], d + 1);
}

/* SYNC IMAGES of one image or of a list of them, counted from 1. */
PWX_UNUSED void pwx_f_sync_images(const CFI_cdesc_t* images, const pwx_where* where) {
  const size_t count = pwx_f_count(images);
  if (!pwx_f_is(images, CFI_type_int & CFI_type_mask) || images->elem_len != sizeof(int))
    pwx_error(where, "the images of SYNC IMAGES must be integer(4)");
  int* const numbers = malloc((count + 1) * sizeof(int));
  if (numbers == NULL) pwx_error(where, "there is no memory for the numbers of %zu images", count);
  for (size_t i = 0; i < count; ++i) numbers[i] = ((const int*)images->base_addr)[i] - 1;
  pwx_sync_images((long)count, numbers, where);
  free(numbers);
}

/* ---- arrays ---- */

/* How a Fortran pointer finds an array's memory: extents and lower bounds in Fortran's order, where `lower`
 * has the lower bounds of the whole array in C's. */
PWX_UNUSED void* pwx_f_memory(const pwx_array* a, const long* lower, int64_t* extents, int64_t* bounds) {
  for (int d = 0; d < a->ndims; ++d) {
    const pwx_array_dim* const dim = &a->dim[a->ndims - 1 - d];
    extents[d] = a->memory == NULL ? 0 : dim->ld;
    bounds[d] = dim->base + lower[a->ndims - 1 - d];
  }
  return a->memory;
}

/* ---- sections ---- */

/* first:last:step of a dimension with this lower bound; an index where `is_index`. */
PWX_UNUSED pwx_triplet pwx_f_triplet(long first, long last, long step, int is_index, long lower) {
  const long count = step == 0 ? 0 : (last - first + step) / step;
  const pwx_triplet triplet = {first - lower, is_index ? 1 : count < 0 ? 0 : count, step, is_index};
  return triplet;
}
/* Last index of a dimension of an array. */
PWX_UNUSED long pwx_f_last(const pwx_array* a, const long* lower, int d) {
  return lower[d] + a->dim[d].size - 1;
}

/* All of a local value, which is contiguous. */
PWX_UNUSED pwx_section pwx_f_section(const CFI_cdesc_t* value) {
  pwx_section section = {0};
  section.base = value->base_addr;
  section.element_bytes = value->elem_len;
  section.ndims = value->rank;
  for (int d = 0; d < value->rank; ++d) {
    const int to = value->rank - 1 - d;
    section.extent[to] = pwx_f_extent(value, d);
    section.dim[to] = (pwx_triplet){0, section.extent[to], 1, 0};
  }
  return section;
}

#endif
