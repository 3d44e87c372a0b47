/* What the code of acc directives calls where a process computes on a GPU. A program does not include this
 * itself.
 *
 * On CPU cores host and device memory are one: the generated code asks pwx_gpu() once a construct, does its
 * loops as OpenMP where it is 0, and calls nothing else of this header. Errors are as in runtime.h. */
#ifndef PEERWAY_XACC_ACC_H
#define PEERWAY_XACC_ACC_H

#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1: this process computes on a GPU. The first call opens it: the GPU is that of acc_set_device_num,
 * else the one whose number is this rank's among those of its host, modulo the GPUs; without one, or with
 * the setting acc = host (PEERWAY_ACC), 0. */
PWX_API int pwx_gpu(void);

/* ---- data ---- */

typedef enum pwx_data_kind {
  PWX_DATA_COPY,
  PWX_DATA_COPYIN,
  PWX_DATA_COPYOUT,
  PWX_DATA_CREATE,
  PWX_DATA_NO_CREATE,
  PWX_DATA_PRESENT,
  PWX_DATA_DELETE,       /* of exit data */
  PWX_DATA_COPYOUT_ZERO, /* with zeros first, where it is made present */
  PWX_DATA_CREATE_ZERO
} pwx_data_kind;

/* What a clause names: a distributed array, always the whole local part with its shadow, or `bytes` of memory
 * at `address`. */
typedef struct pwx_data {
  pwx_data_kind kind;
  const char* name;
  pwx_array* array; /* NULL: plain memory */
  void* address;
  size_t bytes;
} pwx_data;

/* Some file of the program has clauses with zero: where host and device memory are one, what is named is
 * counted from the start, because zeros come only to what is not present. */
PWX_API void pwx_data_zero(void);

/* The queue of a construct, numbered as in openacc.h: async(n) is n, async without an argument
 * PWX_QUEUE_DEFAULT, which is queue 0 or what was set; no async PWX_QUEUE_SYNC, whose work is in the order of
 * the program and seen by the host when a directive that copies to it ends. */
enum { PWX_QUEUE_SYNC = -2, PWX_QUEUE_DEFAULT = -1 };

/* One static object for each construct: what it found at its last call. */
typedef struct pwx_data_region {
  uint64_t generation;
  struct pwx_data_region_state* state;
} pwx_data_region;

/* A structured region: data constructs and the data of a compute construct. Nested and recursive calls are
 * counted. Free but for a comparison where all was present at the last call and nothing was made present or
 * removed since. */
PWX_API void pwx_data_begin(pwx_data_region* region, int count, const pwx_data* data, long queue,
                            const pwx_where* where);
PWX_API void pwx_data_end(pwx_data_region* region, int count, const pwx_data* data, long queue,
                          const pwx_where* where);
PWX_API void pwx_enter_data(int count, const pwx_data* data, long queue, const pwx_where* where);
PWX_API void pwx_exit_data(int count, const pwx_data* data, int finalize, long queue, const pwx_where* where);
/* acc declare in a function: entered at once, left where its block ends, with __attribute__((cleanup)). */
typedef struct pwx_declared {
  int count;
  const pwx_data* data;
  const pwx_where* where;
} pwx_declared;
static inline void pwx_declared_end(pwx_declared* declared) {
  pwx_exit_data(declared->count, declared->data, 0, PWX_QUEUE_SYNC, declared->where);
}

/* `bytes` may be a part of what is present; 0 is all of it. */
PWX_API void pwx_update_host(int count, const pwx_data* data, int if_present, long queue,
                             const pwx_where* where);
PWX_API void pwx_update_device(int count, const pwx_data* data, int if_present, long queue,
                               const pwx_where* where);

/* A section that need not be contiguous, row by row; of a distributed array what of it lies in this node's
 * memory, with its shadow. `to_device` 0: to the host. */
PWX_API void pwx_update_part(int to_device, const pwx_section* part, const char* name, int if_present,
                             long queue, const pwx_where* where);

/* 1; an error unless `first` and `length` are all of a dimension of this size. */
static inline size_t pwx_whole(long first, long length, long size, const char* name, const pwx_where* where) {
  if (first != 0 || length != size)
    pwx_error(where,
              "a section of %s in a data clause has %ld elements from %ld on of rows of %ld; it must be "
              "contiguous: name whole rows",
              name, length, first, size);
  return 1;
}

/* The rows that `count` pointers at `table` lead to, as a list for the calls above: `bytes` of each from
 * `offset` on. Attached, the copies of the pointers lead to the copies of the rows. */
PWX_API void pwx_rows(pwx_data* data, long count, pwx_data_kind kind, const char* name, void* table,
                      size_t offset, size_t bytes);
PWX_API void pwx_rows_attach(const char* name, void* table, long count, size_t offset,
                             const pwx_where* where);

/* Counts what was made present or removed. */
PWX_API extern uint64_t pwx_generation;

/* One static object for each name in a construct. */
typedef struct pwx_known {
  const void* host;
  void* device;
  uint64_t generation;
} pwx_known;

PWX_API void* pwx_find_device(pwx_known* known, const void* host, const char* name, const pwx_where* where);
PWX_API void* pwx_find_device_array(pwx_known* known, const pwx_array* a, const pwx_where* where);

/* For if_present: where the device finds the memory, or the array's memory if that is not NULL; where it is
 * not present the host's address. */
PWX_API void* pwx_device_or_host(const void* host, const pwx_array* a, const char* name,
                                 const pwx_where* where);

/* Where the device finds what the host has at `host`; an error where that is not present. */
static inline void* pwx_device(pwx_known* known, const void* host, const char* name, const pwx_where* where) {
  if (known->host == host && known->generation == pwx_generation) return known->device;
  return pwx_find_device(known, host, name, where);
}
/* The memory of a distributed array on the device, whose shape is the host's. */
static inline void* pwx_device_array(pwx_known* known, const pwx_array* a, const pwx_where* where) {
  if (known->host == a->state && known->generation == pwx_generation) return known->device;
  return pwx_find_device_array(known, a, where);
}

/* acc set: `type` is an acc_device_t; NULL where a clause is missing. */
PWX_API void pwx_acc_set(int type, const int* number, const long* queue, const pwx_where* where);

/* ---- kernels ---- */

/* One static object for each compute construct. `source`: CUDA C++ with an extern "C" __global__ function
 * `name`, without the prelude (xacc/runtime/kernels: fixed-width types, reductions), which the run time puts
 * before it. Compiled by NVRTC, kept on disk: those that a pwx_unit has before the first work on the GPU,
 * others when first launched. */
typedef struct pwx_kernel {
  const char* name;
  const char* source;
  struct pwx_kernel_state* state;
  const unsigned* sizes; /* of the arguments, without reductions; NULL: launched at once, never in a graph */
  int exchanges; /* 1, of the run time's own: it includes Peerway's headers and exchanges values with other
                    ranks (kernels/exchange.cuh), and waits itself for the work before it */
} pwx_kernel;

/* Kernels are right for any grid and any block: each dimension strides over its iterations. `iterations`: of
 * the dimensions x, y, z, 1 where there is none. `threads`: of a block in x, or 0; of vector_length.
 * `blocks`: of num_gangs, or 0. `by_block` 1: a block does one iteration of x, its threads share what is
 * inside. */
typedef struct pwx_shape {
  long iterations[3];
  int threads;
  int blocks;
  int by_block;
} pwx_shape;

#define PWX_AT_LEAST_0(count) ((count) > 0 ? (count) : 0)

/* What private and firstprivate give a thread of what a pointer leads to: `bytes` of memory, with those of
 * `from` (NULL: nothing) from `first` on. Freed by __attribute__((cleanup(pwx_own_end))). */
PWX_API void* pwx_own(const void* from, size_t first, size_t bytes, const pwx_where* where);
PWX_API void pwx_own_end(void* own);

/* The address of a variable that a block has a copy of. The compiler takes the variable for one with a value.
 */
static inline const void* pwx_outer(const void* variable) {
  __asm__ volatile("" : "+r"(variable) : : "memory");
  return variable;
}

/* The same in a kernel: memory of the GPU for all its threads, of which there are then only so many. */
#define PWX_OWN_THREADS 64 /* in a block */
static inline long pwx_own_blocks(size_t bytes, double iterations) {
  const double most = (double)(256 << 20) / (double)(PWX_OWN_THREADS * (bytes ? bytes : 1));
  const double blocks = iterations / PWX_OWN_THREADS < most ? iterations / PWX_OWN_THREADS : most;
  return blocks > 65535 ? 65535 : (long)blocks + 1;
}
PWX_API void* pwx_scratch(size_t bytes, const pwx_where* where);
/* Waits for the kernel on that queue. */
PWX_API void pwx_scratch_end(void* scratch, long queue, const pwx_where* where);

/* How many iterations share a dimension of a grid; an error where 32 bits do not count them. */
static inline unsigned pwx_iterations(long count, const pwx_where* where) {
  if (count > 0x7fffffff) pwx_error(where, "a loop of %ld iterations; a GPU counts 2147483647 here", count);
  return (unsigned)count;
}

/* A variable of a reduction. The value from before takes part. `device` NULL: the host has the result when
 * pwx_launch returns or, with a queue, when that was waited for; else it stays at this address of the
 * device. In the kernel it is the last arguments, one pwx_total<T> (of the prelude) a variable, in this
 * order. */
typedef struct pwx_reduction {
  pwx_op op;
  pwx_type type;
  void* host;
  void* device;
} pwx_reduction;

/* `arguments`: the address of each, as cuLaunchKernel has them, without those of the reductions. */
PWX_API void pwx_launch(pwx_kernel* kernel, const pwx_shape* shape, void** arguments, int argument_count,
                        int reduction_count, const pwx_reduction* reductions, long queue,
                        const pwx_where* where);

/* Around constructs with nothing between them: kernels and reflects are launched at the end, by one launch of
 * a graph where the same were launched here before with the same arguments. Of nested ones the outermost
 * counts. One static object for each. */
typedef struct pwx_sequence {
  struct pwx_sequence_state* state;
} pwx_sequence;
PWX_API void pwx_sequence_begin(void);
PWX_API void pwx_sequence_end(pwx_sequence* sequence, const pwx_where* where);

/* Values of all nodes, of what is present at `device`: as pwx_reduce and pwx_bcast. */
PWX_API void pwx_reduce_device(const pwx_ref* on, pwx_op op, pwx_type type, void* device, size_t count,
                               const pwx_where* where);
PWX_API void pwx_bcast_device(const pwx_ref* on, const pwx_ref* from, void* device, size_t bytes,
                              const pwx_where* where);

/* Of the copies on the GPU; the host's memory has the same afterwards. A local side that is not present is
 * the host's. */
PWX_API void pwx_gmove_device(pwx_gmove_mode mode, const pwx_section* target, const pwx_section* source,
                              const pwx_where* where);

/* Wait for queues; `count` 0: all. With `queue` not PWX_QUEUE_SYNC that queue waits, not the host. */
PWX_API void pwx_acc_wait(int count, const long* queues, long queue, const pwx_where* where);

#ifdef __cplusplus
}
#endif
#endif
