/* What `peerway cc` generates calls to. A program does not include this itself.
 *
 * Conventions. Dimensions of nodes and templates are in Fortran order, the first the fastest; those of arrays
 * in C order, the last the fastest. Node coordinates in references are counted from 1, template indices are
 * as written, array subscripts from 0. Objects begin as zeros. Every function that
 * communicates is called by all ranks of the executing set, in the same order. An error is one line
 * "prog.c:12: error: ..." on standard error, and the job ends with status 1. */
#ifndef PEERWAY_XACC_RUNTIME_H
#define PEERWAY_XACC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#if defined(PEERWAY_BUILD)
#define PWX_API __attribute__((visibility("default")))
#else
#define PWX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PWX_MAX_DIMS 7

/* The line of the directive. */
typedef struct pwx_where {
  const char* file;
  int line;
} pwx_where;

/* ---- the program ---- */

/* What a source file declares. Its constructor adds it to the list; pwx_begin calls `set_up` of all, in the
 * order in which they were added. */
struct pwx_kernel;
typedef struct pwx_unit {
  void (*set_up)(void); /* or NULL */
  struct pwx_unit* next;
  struct pwx_kernel* const* kernels; /* of acc.h, and NULL behind the last; or NULL */
} pwx_unit;

PWX_API void pwx_unit_add(pwx_unit* unit);

/* The first statement of main. The end is by atexit. */
PWX_API void pwx_begin(int* argc, char*** argv);

/* Prints "file:line: error: text" once and ends the job. What the generated code itself finds wrong. */
PWX_API void pwx_error(const pwx_where* where, const char* format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* ---- nodes ---- */

typedef struct pwx_nodes {
  const char* name;
  int ndims;
  int size[PWX_MAX_DIMS];
  int at[PWX_MAX_DIMS]; /* this rank's coordinates, from 0; -1 where it is no member */
  int total;
  int member;       /* 1: this rank is one of them */
  int own;          /* 1: other ranks may have other nodes by this name, as row = p(:,*) */
  const int* ranks; /* team ranks, the first dimension the fastest */
} pwx_nodes;

/* One subscript of a reference: all (`:`), this node's own (`*`), or first to last (both included) by step;
 * one index is a range of one. */
typedef enum pwx_sub_kind { PWX_ALL = 0, PWX_MINE = 1, PWX_RANGE = 2 } pwx_sub_kind;
typedef struct pwx_sub {
  pwx_sub_kind kind;
  long first, last, step;
} pwx_sub;

/* `p(1,*)` or `t(i,j)`: one of `nodes` and `on_template` is not NULL. */
struct pwx_template;
typedef struct pwx_ref {
  const pwx_nodes* nodes;
  const struct pwx_template* on_template;
  pwx_sub sub[PWX_MAX_DIMS];
} pwx_ref;

/* A size that is left open: `*`. No size that a program computes has this value. */
#define PWX_OPEN (-2147483647 - 1)

/* `sizes`: at most one is PWX_OPEN. `of`: the nodes that these are a new arrangement of (`= q(:,*)`);
 * NULL: `executing` 1 the executing set (`= *`), 0 all processes. Fewer nodes than processes are possible. */
PWX_API void pwx_nodes_init(pwx_nodes* nodes, const char* name, int ndims, const int* sizes,
                            const pwx_ref* of, int executing, const pwx_where* where);

/* ---- templates ---- */

typedef enum pwx_kind {
  PWX_DUPLICATED = 0, /* `*` */
  PWX_BLOCK = 1,
  PWX_CYCLIC = 2, /* cyclic and cyclic(width) */
  PWX_GBLOCK = 3
} pwx_kind;

typedef struct pwx_template_dim {
  pwx_kind kind;
  int nodes_dim;                /* -1: duplicated */
  int parts;                    /* nodes that it is distributed over; 1: duplicated */
  int at;                       /* this rank's coordinate among them, from 0; -1: no member */
  long first, last;             /* of the template */
  long width;                   /* of a block: ceil(size / parts); of cyclic(width) */
  long owned_first, owned_last; /* both included, empty where first > last; not for cyclic */
  const long* starts;           /* gblock: first index of each part, and one past the last: parts + 1 */
} pwx_template_dim;

typedef struct pwx_template {
  const char* name;
  int ndims;
  int fixed;       /* 1: bounds are known */
  int distributed; /* 1: nodes are known */
  const pwx_nodes* nodes;
  pwx_template_dim dim[PWX_MAX_DIMS];
} pwx_template;

PWX_API void pwx_template_init(pwx_template* t, const char* name, int ndims, const long* first,
                               const long* last, const pwx_where* where);
/* `t(:)`: to be fixed later. */
PWX_API void pwx_template_open(pwx_template* t, const char* name, int ndims, const pwx_where* where);

/* A template of a block ends; also as __attribute__((cleanup)). */
PWX_API void pwx_template_end(pwx_template* t);

/* The dimensions that are not duplicated take those of the nodes in order. `widths`: of cyclic, 0 is 1, and
 * of block(width), 0 the usual; may be NULL. `sizes[d]`: of gblock, one a node; NULL is gblock(*), which
 * template_fix gives. */
PWX_API void pwx_distribute(pwx_template* t, const pwx_nodes* nodes, const pwx_kind* kinds,
                            const long* widths, const long* const* sizes, const pwx_where* where);

/* `first` NULL: the bounds stay. `sizes` NULL: as pwx_distribute had them. */
PWX_API void pwx_template_fix(pwx_template* t, const long* first, const long* last, const long* const* sizes,
                              const pwx_where* where);

/* A template of the file that is fixed later: `call` is made then, unless it is NULL; it gives arrays their
 * memory. Templates of one name that were `declared` in the same line of a header, which several files
 * include, are one: pwx_template_fix of one fixes all. */
PWX_API void pwx_when_fixed(pwx_template* t, void (*call)(void), const pwx_where* declared);

/* ---- arrays ---- */

struct pwx_array_state;

typedef struct pwx_array_dim {
  long size;
  int template_dim; /* -1: not distributed */
  long offset;      /* element i lies with template index i + offset */
  long shadow[2];   /* layers below and above; -1 in both: full */
  long first, last; /* of what this rank owns, both included; empty where first > last; not for cyclic */
  long ld;          /* elements that the memory holds in this dimension */
  long held;        /* of these the array's own, with its shadow; 0 where nothing is allocated */
  long base;        /* the subscript of the first of them; 0 for cyclic, whose subscripts are translated */
} pwx_array_dim;

typedef struct pwx_array {
  const char* name;
  int ndims;
  size_t element_bytes;
  void* memory; /* element [i][j]... lies at [i - dim[0].base][j - dim[1].base]... of what it holds */
  long ld[PWX_MAX_DIMS];
  const pwx_template* on;
  pwx_array_dim dim[PWX_MAX_DIMS];
  struct pwx_array_state* state; /* NULL: not allocated */
  uint64_t bound;                /* of a parameter: how many arrays had been freed when it was bound */
  int watch;                     /* of pwx_array_watch */
} pwx_array;

/* A descriptor and its memory, which is zeros. In C order: `template_dim[d]` (-1: not distributed),
 * `offset[d]`, `shadow_lo[d]` and `shadow_hi[d]` (-1 both: full). The memory of a block dimension is
 * ceil(template size / parts) + shadows on every rank; of a dimension that is not distributed its size +
 * shadows; of full shadow its size. Each rank decides by arithmetic alone: it does not communicate. */
PWX_API void pwx_array_init(pwx_array* a, const char* name, size_t element_bytes, int ndims,
                            const long* sizes, const pwx_template* t, const int* template_dim,
                            const long* offset, const long* shadow_lo, const long* shadow_hi,
                            const pwx_where* where);
/* The same of a function's array, which pwx_array_leave ends, also as __attribute__((cleanup)): its memory,
 * its copy on the GPU and the plans of its reflects are kept for the next call, where an array of this shape
 * is made at the same `where`. An array that is still there is left first. */
PWX_API void pwx_array_enter(pwx_array* a, const char* name, size_t element_bytes, int ndims,
                             const long* sizes, const pwx_template* t, const int* template_dim,
                             const long* offset, const long* shadow_lo, const long* shadow_hi,
                             const pwx_where* where);
PWX_API void pwx_array_leave(pwx_array* a);
/* The same without memory, for pointers that xmp_malloc allocates: sizes come with pwx_array_allocate. */
PWX_API void pwx_array_open(pwx_array* a, const char* name, size_t element_bytes, int ndims,
                            const pwx_template* t, const int* template_dim, const long* offset,
                            const long* shadow_lo, const long* shadow_hi, const pwx_where* where);
/* Gives the memory. */
PWX_API void* pwx_array_allocate(pwx_array* a, const long* sizes, const pwx_where* where);
PWX_API void pwx_array_free(pwx_array* a); /* also as __attribute__((cleanup)) */

/* `watch` 1: pwx_written reports everything that writes the array, at places that all its nodes execute, so
 * that a reflect of an array that nothing wrote since the last one costs nothing. 2: something of this source
 * file writes it unseen. An array that any file says 2 of, or none says 1 of, is reflected always. */
PWX_API void pwx_array_watch(pwx_array* a, int watch);
PWX_API void pwx_written(const pwx_array* a); /* may be called before it is allocated */
PWX_API void pwx_written_all(void);

/* A subscript that this node does not have in its memory. */
PWX_API void pwx_not_in_memory(const pwx_array* a, int d, long i, const char* file, int line)
    __attribute__((noreturn, cold));

/* The generated code has ld[d] as a literal: it must be this. */
PWX_API void pwx_array_expect(const pwx_array* a, int d, long ld, const pwx_where* where);

/* A parameter: `v` becomes the array whose memory `argument` is and that has this size, alignment and
 * shadow. Fast where it is that of the last call. */
PWX_API void pwx_bind(pwx_array* v, void* argument, const char* name, size_t element_bytes, int ndims,
                      const long* sizes, const pwx_template* t, const int* template_dim, const long* offset,
                      const long* shadow_lo, const long* shadow_hi, const pwx_where* where);

/* The subscript in memory of element i of a cyclic dimension that this rank owns. */
static inline long pwx_cyclic_local(const pwx_array* a, int d, long i) {
  const pwx_array_dim* dim = &a->dim[d];
  const pwx_template_dim* t = &a->on->dim[dim->template_dim];
  const long u = i + dim->offset - t->first;
  return t->width == 1 ? u / t->parts : u / (t->width * t->parts) * t->width + u % t->width;
}

/* ---- reflect ---- */

typedef struct pwx_width {
  long lo, hi;
  int periodic;
} pwx_width;

/* One static object for each reflect in the text: remembers the plan of its last call. */
typedef struct pwx_halo {
  struct pwx_halo_state* state;
} pwx_halo;

/* Bits of `flags`: without corners; of the copies on the GPU, where this process computes on one, in the
 * order of the program's work without a queue. */
enum { PWX_REFLECT_ORTHOGONAL = 1, PWX_REFLECT_ACC = 2, PWX_REFLECT_NOWAIT = 4 };

/* `widths`: one for each dimension in C order, the same for all arrays; NULL: all of the shadow. */
PWX_API void pwx_reflect(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths,
                         int flags, const pwx_where* where);
/* Several with widths of their own, as one plan. With NOWAIT in `flags` as pwx_reflect_start. */
PWX_API void pwx_reflect_each(pwx_halo* halo, int count, pwx_array* const* arrays,
                              const pwx_width* const* widths, int flags, const pwx_where* where);
/* In two parts, of which pwx_reflect_wait is the second: between them, elements that no halo touches may be
 * computed. */
PWX_API void pwx_reflect_start(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths,
                               int flags, const pwx_where* where);
/* Finishes all that were started of these arrays. */
PWX_API void pwx_reflect_wait(int count, pwx_array* const* arrays, const pwx_where* where);
/* Finished by pwx_wait_async of the same id. */
PWX_API void pwx_reflect_async(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths,
                               int flags, long id, const pwx_where* where);
PWX_API void pwx_wait_async(long id, const pwx_where* where);

PWX_API void pwx_reflect_init(int count, pwx_array* const* arrays, const pwx_width* widths, int flags,
                              const pwx_where* where);
PWX_API void pwx_reflect_do(int count, pwx_array* const* arrays, const pwx_where* where);

/* ---- values of all nodes ---- */

typedef enum pwx_type {
  PWX_CHAR,
  PWX_SIGNED_CHAR,
  PWX_UNSIGNED_CHAR,
  PWX_SHORT,
  PWX_UNSIGNED_SHORT,
  PWX_INT,
  PWX_UNSIGNED_INT,
  PWX_LONG,
  PWX_UNSIGNED_LONG,
  PWX_LONG_LONG,
  PWX_UNSIGNED_LONG_LONG,
  PWX_BOOL,
  PWX_FLOAT,
  PWX_DOUBLE,
  PWX_LONG_DOUBLE,
  PWX_FLOAT_COMPLEX,
  PWX_DOUBLE_COMPLEX
} pwx_type;

typedef enum pwx_op {
  PWX_SUM,
  PWX_PRODUCT,
  PWX_MAX,
  PWX_MIN,
  PWX_BIT_AND,
  PWX_BIT_OR,
  PWX_BIT_XOR,
  PWX_AND,
  PWX_OR,
  PWX_MINUS, /* as a sum */
  PWX_FIRST_MAX,
  PWX_LAST_MAX,
  PWX_FIRST_MIN,
  PWX_LAST_MIN
} pwx_op;

/* The halos are added to the elements that they are copies of. */
PWX_API void pwx_reduce_shadow(pwx_array* a, pwx_type type, const pwx_width* widths, const pwx_where* where);

/* `on` NULL: the executing set. A rank that is not in `on` returns at once. `value` is `count` elements. */
PWX_API void pwx_barrier(const pwx_ref* on, const pwx_where* where);
PWX_API void pwx_reduce(const pwx_ref* on, pwx_op op, pwx_type type, void* value, size_t count,
                        const pwx_where* where);

/* With the location variables of first and last max and min: one scalar, `locations` variables of
 * `location_bytes[k]` each. Of equal values the node that comes first, or last, wins. */
PWX_API void pwx_reduce_location(const pwx_ref* on, pwx_op op, pwx_type type, void* value, int locations,
                                 void* const* location, const size_t* location_bytes, const pwx_where* where);

/* The whole local part, without shadow, of a distributed array, element by element. */
PWX_API void pwx_reduce_array(const pwx_ref* on, pwx_op op, pwx_type type, pwx_array* a,
                              const pwx_where* where);

/* `from` NULL: the first node of `on`. */
PWX_API void pwx_bcast(const pwx_ref* on, const pwx_ref* from, void* value, size_t bytes,
                       const pwx_where* where);

/* ---- tasks ---- */

typedef struct pwx_task {
  int inside; /* 1: this rank does the body */
  int pushed;
} pwx_task;

PWX_API pwx_task pwx_task_begin(const pwx_ref* on, int nocomm, const pwx_where* where);
PWX_API void pwx_task_end(pwx_task* task); /* also as __attribute__((cleanup)) */

/* ---- gmove ---- */

typedef struct pwx_triplet {
  long first, count, step;
  int is_index; /* 1: one subscript, no dimension of the section */
} pwx_triplet;

/* A section of a distributed array (`array`), or of a local one of C: `base`, `element_bytes`, `extent`. A
 * scalar is a local one of 0 dimensions. */
typedef struct pwx_section {
  const pwx_array* array;
  void* base;
  size_t element_bytes;
  int ndims;
  long extent[PWX_MAX_DIMS];
  pwx_triplet dim[PWX_MAX_DIMS];
} pwx_section;

/* With in, each executing node that owns elements of the left side gets them from those that own them at the
 * right, which need not call this. With out, the owners at the right put. When it returns, all executing
 * nodes are done with it. The forms with GPUs mean the copies that the others have on their GPUs, where this
 * process computes on one. */
typedef enum pwx_gmove_mode {
  PWX_COLLECTIVE = 0,
  PWX_IN = 1,
  PWX_OUT = 2,
  PWX_IN_FROM_GPUS = 3,
  PWX_OUT_TO_GPUS = 4
} pwx_gmove_mode;

/* target = source. The same number of dimensions with the same counts, or a scalar at the right. */
PWX_API void pwx_gmove(pwx_gmove_mode mode, const pwx_section* target, const pwx_section* source,
                       const pwx_where* where);

/* Before pwx_begin, in programs that do one with in or out: arrays are to be reached by others. */
PWX_API void pwx_gmove_one_sided(void);

/* xmp_matmul and xmp_sort_up or xmp_sort_down, with the type of the elements. */
PWX_API void pwx_matmul(pwx_type type, void* product, void* lhs, void* rhs);
PWX_API void pwx_sort(pwx_type type, void* from, void* to, int up);

/* ---- coarrays, post and wait ---- */

typedef struct pwx_coarray {
  const char* name;
  int ndims;
  size_t element_bytes;
  long size[PWX_MAX_DIMS];
  void* base; /* this image's */
  struct pwx_coarray_state* state;
} pwx_coarray;

/* Collective over all images. Images are counted from 0. `base` is the program's own memory, or NULL for new
 * memory. */
PWX_API void pwx_coarray_init(pwx_coarray* x, const char* name, size_t element_bytes, int ndims,
                              const long* sizes, const pwx_where* where);
/* The copy on the GPU is to be reached from others, too. Collective over all images, behind pwx_coarray_init.
 */
PWX_API void pwx_coarray_on_gpus(pwx_coarray* x, const pwx_where* where);
/* Which sides of a transfer are copies on GPUs: the coarray's, the local one, whose `base` is an address of
 * this process's GPU then. */
enum { PWX_COARRAY_THERE = 1, PWX_COARRAY_HERE = 2 };
/* `other` is local (array NULL). A put is complete at the next synchronisation (xmp_sync_all, ...), a get
 * when it returns. Where a GPU takes part, both come after what the program did without a queue. */
PWX_API void pwx_coarray_put(const pwx_coarray* to, long image, const pwx_triplet* section,
                             const pwx_section* other, int places, const pwx_where* where);
PWX_API void pwx_coarray_get(const pwx_section* other, const pwx_coarray* from, long image,
                             const pwx_triplet* section, int places, const pwx_where* where);

/* The number of an image with `count` subscripts, of which the first counts fastest. */
static inline long pwx_image(int count, const long* sizes, const long* subscripts, const char* name,
                             const pwx_where* where) {
  long image = subscripts[count - 1];
  for (int d = count - 2; d >= 0; --d) {
    if (subscripts[d] < 0 || subscripts[d] >= sizes[d])
      pwx_error(where, "image %ld in dimension %d of coarray %s, which has 0 to %ld", subscripts[d], d, name,
                sizes[d] - 1);
    image = image * sizes[d] + subscripts[d];
  }
  return image;
}

/* The locks that are a coarray of xmp_lock_t: `count` at each image. Collective over all images. */
typedef struct pwx_locks {
  const char* name;
  long count;
  struct pwx_locks_state* state;
} pwx_locks;
enum { PWX_STAT_SUCCESS = 0, PWX_STAT_LOCKED = 1, PWX_STAT_UNLOCKED = 2, PWX_STAT_LOCKED_OTHER_IMAGE = 3 };
PWX_API void pwx_locks_init(pwx_locks* locks, const char* name, long count, const pwx_where* where);
/* Lock number `element` at an image. With `acquired` it does not wait: 1 is written there if the lock was
 * free. Gives one of PWX_STAT; with `may_fail` 0 all but success is an error. */
PWX_API int pwx_lock(const pwx_locks* locks, long element, long image, int* acquired, int may_fail,
                     const pwx_where* where);
/* What this image put before is complete for the next one that has the lock. */
PWX_API int pwx_unlock(const pwx_locks* locks, long element, long image, int may_fail,
                       const pwx_where* where);

PWX_API void pwx_sync_memory(const pwx_where* where);
PWX_API void pwx_sync_all(const pwx_where* where);
PWX_API void pwx_sync_image(long image, const pwx_where* where);
PWX_API void pwx_sync_images(long count, const int* images, const pwx_where* where);

/* `node`: one node. Puts to it come before the post. */
PWX_API void pwx_post(const pwx_ref* node, long tag, const pwx_where* where);
/* `node` NULL: of any node with this tag; `any_tag` 1: of any tag, too. */
PWX_API void pwx_wait(const pwx_ref* node, int any_tag, long tag, const pwx_where* where);

#ifdef __cplusplus
}
#endif
#endif
