/* The functions of XcalableMP. If `peerway cc` does not compile a program, it is sequential: one node.
 * Dimensions count from 1, those of arrays in C order, of templates and nodes in Fortran order. Functions
 * that return an int return 0, or -1 if there is no such dimension or value. */
#ifndef PEERWAY_XACC_XMP_H
#define PEERWAY_XACC_XMP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void* xmp_desc_t;

/* The element of a coarray of locks, for the directives lock and unlock; `stat` of these is one of the
 * values below. */
typedef struct xmp_lock_t {
  unsigned char unused;
} xmp_lock_t;
enum { XMP_STAT_SUCCESS = 0, XMP_STAT_LOCKED = 1, XMP_STAT_UNLOCKED = 2, XMP_STAT_LOCKED_OTHER_IMAGE = 3 };

#ifdef _XCALABLEMP

#if !defined(__cplusplus) && defined(__has_include)
#if __has_include(<mpi.h>)
#include <mpi.h> /* other compilers' xmp.h bring it, and programs rely on that */
#endif
#endif

#define PWX_FUNCTION(declaration, sequential) declaration;

#else

#include <time.h>
static inline double pwx_sequential_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
#define PWX_FUNCTION(declaration, sequential) \
  static inline declaration { sequential; }
#define xmp_desc_of(name) ((xmp_desc_t)0)

#endif

/* Nodes count from 1, images from 0. The functions with `all` are about all nodes, the others about the
 * executing nodes. */
PWX_FUNCTION(int xmp_node_num(void), return 1)
PWX_FUNCTION(int xmp_num_nodes(void), return 1)
PWX_FUNCTION(int xmp_all_node_num(void), return 1)
PWX_FUNCTION(int xmp_all_num_nodes(void), return 1)
PWX_FUNCTION(int xmpc_node_num(void), return 0)
PWX_FUNCTION(int xmpc_all_node_num(void), return 0)
PWX_FUNCTION(int xmpc_this_image(void), return 0)
PWX_FUNCTION(int xmpc_num_images(void), return 1)
PWX_FUNCTION(int xmp_num_images(void), return 1)

PWX_FUNCTION(double xmp_wtime(void), return pwx_sequential_time())
PWX_FUNCTION(double xmp_wtick(void), return 1e-9)
PWX_FUNCTION(void xmp_barrier(void), )
PWX_FUNCTION(void xmp_exit(int status), extern void exit(int); exit(status))

/* `status`: 0 is written to it unless it is NULL. */
PWX_FUNCTION(void xmp_sync_all(int* status), if (status) * status = 0)
PWX_FUNCTION(void xmp_sync_memory(int* status), if (status) * status = 0)
PWX_FUNCTION(void xmp_sync_image(int image, int* status), (void)image; if (status) * status = 0)
PWX_FUNCTION(void xmp_sync_images(int count, int* images, int* status), (void)count; (void)images;
             if (status) * status = 0)

#ifdef _XCALABLEMP

/* Allocates memory for a distributed array of these sizes (int), one for each dimension. */
void* xmp_malloc(xmp_desc_t array, ...);
void xmp_free(xmp_desc_t array);

int xmp_array_ndims(xmp_desc_t array, int* ndims);
int xmp_array_gsize(xmp_desc_t array, int dim, int* size);
int xmp_array_lsize(xmp_desc_t array, int dim, int* size);      /* owned by this node */
int xmp_array_gcllbound(xmp_desc_t array, int dim, int* bound); /* global bounds of the part that it owns */
int xmp_array_gclubound(xmp_desc_t array, int dim, int* bound);
int xmp_array_lcllbound(xmp_desc_t array, int dim, int* bound); /* the same in its memory */
int xmp_array_lclubound(xmp_desc_t array, int dim, int* bound);
int xmp_array_gcglbound(xmp_desc_t array, int dim, int* bound); /* of the whole array */
int xmp_array_gcgubound(xmp_desc_t array, int dim, int* bound);
int xmp_array_lshadow(xmp_desc_t array, int dim, int* layers);
int xmp_array_ushadow(xmp_desc_t array, int dim, int* layers);
int xmp_array_lead_dim(xmp_desc_t array, int sizes[]); /* of the memory, one a dimension */
int xmp_array_laddr(xmp_desc_t array, void** address); /* of the memory */
/* global to local subscripts of an owned element */
int xmp_array_gtol(xmp_desc_t array, int global[], int local[]);
int xmp_array_owner(xmp_desc_t array, int ndims, int index[], int dim); /* node coordinate, from 1 */

int xmp_align_axis(xmp_desc_t array, int dim, int* axis);
int xmp_align_offset(xmp_desc_t array, int dim, int* offset);
int xmp_align_replicated(xmp_desc_t array, int dim, int* replicated);
int xmp_align_template(xmp_desc_t array, xmp_desc_t* t);

int xmp_template_fixed(xmp_desc_t t, int* fixed);
int xmp_template_ndims(xmp_desc_t t, int* ndims);
int xmp_template_lbound(xmp_desc_t t, int dim, int* bound);
int xmp_template_ubound(xmp_desc_t t, int dim, int* bound);
int xmp_dist_format(xmp_desc_t t, int dim, int* format);
int xmp_dist_blocksize(xmp_desc_t t, int dim, int* size);
int xmp_dist_gblockmap(xmp_desc_t t, int dim, int map[]);
int xmp_dist_nodes(xmp_desc_t t, xmp_desc_t* nodes);
int xmp_dist_axis(xmp_desc_t t, int dim, int* axis);

int xmp_nodes_ndims(xmp_desc_t nodes, int* ndims);
int xmp_nodes_index(xmp_desc_t nodes, int dim, int* index);
int xmp_nodes_size(xmp_desc_t nodes, int dim, int* size);

/* The transformational intrinsics, for distributed arrays of any mapping. All executing nodes call them,
 * and each needs memory for all operands. A mask is true where an element is not 0; NULL means all true.
 * An index array of int has subscripts from 0; there is one for each dimension of the indexed array. */
void xmp_transpose(xmp_desc_t to, xmp_desc_t from, int may_change_from);
void xmp_matmul(xmp_desc_t product, xmp_desc_t left, xmp_desc_t right); /* only with xmp_desc_of(name) */
void xmp_pack(xmp_desc_t vector, xmp_desc_t from, xmp_desc_t mask);
void xmp_unpack(xmp_desc_t to, xmp_desc_t vector, xmp_desc_t mask);
void xmp_gather(xmp_desc_t to, xmp_desc_t from, ...);  /* to[i] = from[index[i]] */
void xmp_scatter(xmp_desc_t to, xmp_desc_t from, ...); /* to[index[i]] = from[i] */
void xmp_sort_up(xmp_desc_t from, xmp_desc_t to);      /* only with xmp_desc_of(name) */
void xmp_sort_down(xmp_desc_t from, xmp_desc_t to);

#define XMP_NOT_DISTRIBUTED 2100
#define XMP_BLOCK 2101
#define XMP_CYCLIC 2102
#define XMP_GBLOCK 2103

#endif

#undef PWX_FUNCTION

#ifdef __cplusplus
}
#endif
#endif
