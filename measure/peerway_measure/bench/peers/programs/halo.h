/* A distributed array with a halo, as the label of a case spells it: which faces a rank sends and receives,
 * and what its memory must hold afterwards. C11.
 *
 * "halo:2x1/512x512/8[/w1:1_0:0][/p1_0][/corners]": the grid of ranks (the last dimension the fastest), the
 * elements of each rank, the bytes of an element, the layers below and above in each dimension (1:1 where the
 * grid has several ranks), whether each dimension is periodic (all are), and whether corners are refreshed.
 */
#ifndef PEERS_HALO_H
#define PEERS_HALO_H

#include "data.h"
#include "faces.h"

enum { HALO_MOST_DIMS = 7, BELOW = 0, ABOVE = 1 };

typedef struct halo {
  int dims, corners;
  size_t element;
  size_t grid[HALO_MOST_DIMS], local[HALO_MOST_DIMS], width[HALO_MOST_DIMS][2];
  int periodic[HALO_MOST_DIMS];
  /* of the memory, shadow included */
  size_t extent[HALO_MOST_DIMS], stride[HALO_MOST_DIMS]; /* elements; bytes */
} halo;

/* ---- reading ----------------------------------------------------------------------------------- */

/* Numbers with `between` between them, up to `end` or the text's end; how many. */
static inline int halo_numbers(const char* text, char between, size_t* to) {
  int n = 0;
  char* rest;
  for (; n < HALO_MOST_DIMS; text = rest + 1) {
    to[n] = (size_t)strtoull(text, &rest, 10);
    if (rest == text) return -1;
    ++n;
    if (*rest != between) break;
  }
  return *rest ? -1 : n;
}

static inline void halo_option(halo* h, const char* part, const char* label) {
  size_t values[HALO_MOST_DIMS];
  if (!strcmp(part, "corners")) {
    h->corners = 1;
  } else if (*part == 'p' && halo_numbers(part + 1, '_', values) == h->dims) {
    for (int d = 0; d < h->dims; ++d) h->periodic[d] = values[d] != 0;
  } else if (*part == 'w') {
    const char* at = part + 1;
    for (int d = 0; d < h->dims; ++d) {
      int used = 0;
      if (sscanf(at, "%zu:%zu%n", &h->width[d][0], &h->width[d][1], &used) != 2)
        die("'%s' has no width for dimension %d", label, d);
      at += used + (at[used] == '_');
    }
    if (*at) die("'%s' has more widths than dimensions", label);
  } else {
    die("'%s' is not a halo: '%s' is not known", label, part);
  }
}

static inline halo parse_halo(const char* label) {
  halo h;
  char copy[128], *rest = NULL;
  memset(&h, 0, sizeof h);
  snprintf(copy, sizeof copy, "%s", label);
  if (strncmp(copy, "halo:", 5)) die("'%s' is not a halo", label);
  const char *grid = strtok_r(copy + 5, "/", &rest), *local = strtok_r(NULL, "/", &rest);
  const char* element = strtok_r(NULL, "/", &rest);
  h.dims = local ? halo_numbers(local, 'x', h.local) : -1;
  int grid_dims = grid ? halo_numbers(grid, 'x', h.grid) : -1;
  if (h.dims < 1 || grid_dims < 1 || grid_dims > h.dims || !element ||
      halo_numbers(element, 'x', &h.element) != 1)
    die("'%s' is not a halo: a grid, the local elements and the bytes of one are needed", label);
  for (int d = 0; d < h.dims; ++d) {
    if (d >= grid_dims) h.grid[d] = 1;
    h.width[d][0] = h.width[d][1] = h.grid[d] > 1;
    h.periodic[d] = 1;
  }
  for (const char* part; (part = strtok_r(NULL, "/", &rest));) halo_option(&h, part, label);
  size_t stride = h.element;
  for (int d = h.dims - 1; d >= 0; --d) {
    if (!h.local[d] || !h.grid[d] || h.width[d][0] > h.local[d] || h.width[d][1] > h.local[d])
      die("'%s': dimension %d is empty, or its width is more than its %zu elements", label, d, h.local[d]);
    h.extent[d] = h.local[d] + h.width[d][0] + h.width[d][1];
    h.stride[d] = stride;
    stride *= h.extent[d];
  }
  return h;
}

static inline size_t halo_elements(const halo* h) { /* of the memory */
  size_t n = 1;
  for (int d = 0; d < h->dims; ++d) n *= h->extent[d];
  return n;
}

static inline size_t halo_ranks(const halo* h) {
  size_t n = 1;
  for (int d = 0; d < h->dims; ++d) n *= h->grid[d];
  return n;
}

/* ---- neighbours and faces ---------------------------------------------------------------------- */

static inline void halo_place(const halo* h, int rank, size_t* at) {
  size_t rest = (size_t)rank;
  for (int d = h->dims - 1; d >= 0; --d) {
    at[d] = rest % h->grid[d];
    rest /= h->grid[d];
  }
}

/* The rank below or above in a dimension; -1: none. */
static inline int halo_neighbour(const halo* h, int rank, int dim, int side) {
  size_t at[HALO_MOST_DIMS], neighbour = 0;
  halo_place(h, rank, at);
  if (!h->periodic[dim] && at[dim] == (side == BELOW ? 0 : h->grid[dim] - 1)) return -1;
  at[dim] = (at[dim] + h->grid[dim] + (side == BELOW ? -(size_t)1 : 1)) % h->grid[dim];
  for (int d = 0; d < h->dims; ++d) neighbour = neighbour * h->grid[d] + at[d];
  return (int)neighbour;
}

/* The elements [first, first + count) in every dimension as blocks: as few and as long as they can be. */
static inline face face_of(const halo* h, const size_t* first, const size_t* count) {
  face f;
  memset(&f, 0, sizeof f);
  f.block_bytes = h->element;
  int whole = 1; /* all dimensions inside this one are there in full */
  for (int d = h->dims - 1; d >= 0; --d) {
    f.offset += first[d] * h->stride[d];
    if (whole) {
      f.block_bytes *= count[d];
    } else if (f.dims && f.stride[0] * f.count[0] == h->stride[d]) {
      f.count[0] *= count[d];
    } else if (count[d] != 1) { /* 0, too: an empty face */
      memmove(f.count + 1, f.count, f.dims * sizeof *f.count);
      memmove(f.stride + 1, f.stride, f.dims * sizeof *f.stride);
      f.count[0] = count[d];
      f.stride[0] = h->stride[d];
      ++f.dims;
    }
    whole = whole && count[d] == h->extent[d];
  }
  return f;
}

/* What goes to, or comes from, the neighbour at one side. With corners the dimensions are exchanged one after
 * the other, and each takes along the halos of those before it. */
static inline face halo_face(const halo* h, int dim, int side, int outgoing) {
  size_t first[HALO_MOST_DIMS], count[HALO_MOST_DIMS];
  for (int d = 0; d < h->dims; ++d) {
    int grown = h->corners && d < dim;
    first[d] = grown ? 0 : h->width[d][0];
    count[d] = grown ? h->extent[d] : h->local[d];
  }
  size_t below = h->width[dim][0], above = h->width[dim][1];
  if (outgoing) { /* the neighbour below fills its upper halo with it */
    count[dim] = side == BELOW ? above : below;
    first[dim] = side == BELOW ? below : h->local[dim];
  } else {
    count[dim] = side == BELOW ? below : above;
    first[dim] = side == BELOW ? 0 : below + h->local[dim];
  }
  return face_of(h, first, count);
}

static inline size_t face_bytes(const face* f) {
  size_t bytes = f->block_bytes;
  for (unsigned d = 0; d < f->dims; ++d) bytes *= f->count[d];
  return bytes;
}

/* ---- data -------------------------------------------------------------------------------------- */

/* Where in the whole array element `at` of the rank's memory lies, as its number there; `outside` says in how
 * many dimensions it is in a halo. -1: beyond a border that is not periodic. */
static inline long long halo_global(const halo* h, int rank, const size_t* at, int* outside) {
  size_t place[HALO_MOST_DIMS];
  long long number = 0;
  halo_place(h, rank, place);
  *outside = 0;
  for (int d = 0; d < h->dims; ++d) {
    long long whole = (long long)(h->grid[d] * h->local[d]);
    long long index = (long long)(place[d] * h->local[d] + at[d]) - (long long)h->width[d][0];
    if (at[d] < h->width[d][0] || at[d] >= h->width[d][0] + h->local[d]) ++*outside;
    if ((index < 0 || index >= whole) && !h->periodic[d]) return -1;
    number = number * whole + (index + whole) % whole;
  }
  return number;
}

/* The rank's memory before an exchange (its own elements, and poison), or as it must be `after`. */
static inline void halo_image(const halo* h, int rank, int index, int after, unsigned char* to) {
  size_t at[HALO_MOST_DIMS] = {0}, all = halo_elements(h);
  for (size_t e = 0; e < all; ++e, to += h->element) {
    int outside;
    long long number = halo_global(h, rank, at, &outside);
    int own = number >= 0 && (!outside || (after && (outside == 1 || h->corners)));
    uint64_t seed = mixed(((uint64_t)(unsigned)index << 48) + (uint64_t)number * h->element);
    memset(to, POISON, h->element);
    for (size_t b = 0; own && b < h->element; b += 8) {
      uint64_t word = mixed(seed + b);
      memcpy(to + b, &word, h->element - b < 8 ? h->element - b : 8);
    }
    for (int d = h->dims - 1; d >= 0 && ++at[d] == h->extent[d]; --d) at[d] = 0;
  }
}

#endif
