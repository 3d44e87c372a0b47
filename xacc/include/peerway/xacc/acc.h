/* The functions that the code of acc directives calls if a process computes on a GPU. Programs do not
 * include this header themselves.
 *
 * On CPU cores, host and device memory are the same. A compute construct calls pwx_gpu(), and runs with
 * OpenMP because that is 0; there it uses pwx_own() and pwx_outer(). Other directives make the same calls as
 * on a GPU: those for data only count what is present, and only if the program has clauses with zero; the
 * others return at once or, as pwx_reduce_device(), do what their counterparts in runtime.h do. Errors are as
 * in runtime.h. */
#ifndef PEERWAY_XACC_ACC_H
#define PEERWAY_XACC_ACC_H

#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 if this process computes on a GPU. The first call opens it: the one chosen by
 * acc_set_device_num, else the one that the setting device (PEERWAY_DEVICE) names, else the one whose number
 * is this rank's number among the ranks of its host, modulo the number of GPUs that the process sees.
 *
 * Returns 0 if the driver, a GPU or NVRTC is missing, which is an error with the setting acc = gpu
 * (PEERWAY_ACC), and with acc = host. */
PWX_API int pwx_gpu(void);

/* ---- data ---- */

typedef enum pwx_data_kind {
  PWX_DATA_COPY,
  PWX_DATA_COPYIN,
  PWX_DATA_COPYOUT,
  PWX_DATA_CREATE,
  PWX_DATA_NO_CREATE,
  PWX_DATA_PRESENT,
  PWX_DATA_DELETE,       /* in exit data */
  PWX_DATA_COPYOUT_ZERO, /* filled with zeros when it is made present */
  PWX_DATA_CREATE_ZERO
} pwx_data_kind;

/* The operand of a clause: a distributed array, always the whole local part with its shadow, or `bytes` of
 * memory at `address`. */
typedef struct pwx_data {
  pwx_data_kind kind;
  const char* name;
  pwx_array* array; /* NULL: plain memory */
  void* address;
  size_t bytes;
} pwx_data;

/* Called if a file of the program has clauses with zero. If host and device memory are the same, the data
 * that clauses name is then counted from the start, because zeros are set only in data that is not
 * present. */
PWX_API void pwx_data_zero(void);

/* The queue of a construct, numbered as in openacc.h: async(n) is n, and async without an argument is
 * PWX_QUEUE_DEFAULT, which is queue 0 or the one that was set. No async is PWX_QUEUE_SYNC: its work runs
 * in program order, and the host sees its results when a directive that copies to the host ends. */
enum { PWX_QUEUE_SYNC = -2, PWX_QUEUE_DEFAULT = -1 };

/* The state of a construct's last call. Each construct has one static object. */
typedef struct pwx_data_region {
  uint64_t generation;
  struct pwx_data_region_state* state;
} pwx_data_region;

/* Begins and ends a structured region: a data construct, or the data of a compute construct. Nested and
 * recursive calls are counted. A call costs only a comparison if everything was present at the last call,
 * and nothing was made present or removed since. */
PWX_API void pwx_data_begin(pwx_data_region* region, int count, const pwx_data* data, long queue,
                            const pwx_where* where);
PWX_API void pwx_data_end(pwx_data_region* region, int count, const pwx_data* data, long queue,
                          const pwx_where* where);
PWX_API void pwx_enter_data(int count, const pwx_data* data, long queue, const pwx_where* where);
PWX_API void pwx_exit_data(int count, const pwx_data* data, int finalize, long queue, const pwx_where* where);
/* An acc declare in a function: the data is entered at once, and left at the end of its block by
 * __attribute__((cleanup)). */
typedef struct pwx_declared {
  int count;
  const pwx_data* data;
  const pwx_where* where;
} pwx_declared;
static inline void pwx_declared_end(pwx_declared* declared) {
  pwx_exit_data(declared->count, declared->data, 0, PWX_QUEUE_SYNC, declared->where);
}

/* `bytes` may be a part of the present memory; 0 means all of it. */
PWX_API void pwx_update_host(int count, const pwx_data* data, int if_present, long queue,
                             const pwx_where* where);
PWX_API void pwx_update_device(int count, const pwx_data* data, int if_present, long queue,
                               const pwx_where* where);

/* Copies a section, row by row, which need not be contiguous. For a distributed array, copies the part
 * that is in this node's memory, with its shadow. `to_device` 0 copies to the host. */
PWX_API void pwx_update_part(int to_device, const pwx_section* part, const char* name, int if_present,
                             long queue, const pwx_where* where);

/* Returns 1, or reports an error unless `first` and `length` cover a whole dimension of this size. */
static inline size_t pwx_whole(long first, long length, long size, const char* name, const pwx_where* where) {
  if (first != 0 || length != size)
    pwx_error(where,
              "a section of %s in a data clause has %ld elements from %ld on of rows of %ld; it must be "
              "contiguous: name whole rows",
              name, length, first, size);
  return 1;
}

/* pwx_rows lists the rows that `count` pointers at `table` point to, for the calls above: `bytes` of each
 * row from `offset` on. pwx_rows_attach makes the device's copies of the pointers point to the copies of
 * the rows. */
PWX_API void pwx_rows(pwx_data* data, long count, pwx_data_kind kind, const char* name, void* table,
                      size_t offset, size_t bytes);
PWX_API void pwx_rows_attach(const char* name, void* table, long count, size_t offset,
                             const pwx_where* where);

/* Incremented whenever data is made present or removed. */
PWX_API extern uint64_t pwx_generation;

/* The last device address found for a name in a construct. Each such name has one static object. */
typedef struct pwx_known {
  const void* host;
  void* device;
  uint64_t generation;
} pwx_known;

PWX_API void* pwx_find_device(pwx_known* known, const void* host, const char* name, const pwx_where* where);
PWX_API void* pwx_find_device_array(pwx_known* known, const pwx_array* a, const pwx_where* where);

/* For if_present: the device address of `host`, or of the array's memory if `a` is not NULL. If that is
 * not present, the host's address. */
PWX_API void* pwx_device_or_host(const void* host, const pwx_array* a, const char* name,
                                 const pwx_where* where);

/* The device address of the memory at `host`; an error if it is not present. */
static inline void* pwx_device(pwx_known* known, const void* host, const char* name, const pwx_where* where) {
  if (known->host == host && known->generation == pwx_generation) return known->device;
  return pwx_find_device(known, host, name, where);
}
/* The device address of a distributed array's memory, which has the same shape as on the host. */
static inline void* pwx_device_array(pwx_known* known, const pwx_array* a, const pwx_where* where) {
  if (known->host == a->state && known->generation == pwx_generation) return known->device;
  return pwx_find_device_array(known, a, where);
}
/* The same of a pointer to all of a distributed array, whose copy kernels take to begin at 16 bytes. */
static inline void* pwx_device_aligned(pwx_known* known, const void* host, const char* name,
                                       const pwx_where* where) {
  void* const device = pwx_device(known, host, name, where);
  if ((unsigned long)device % 16 != 0)
    pwx_error(where,
              "%s was mapped to an address on the GPU that is no multiple of 16 bytes; map it to memory "
              "of acc_malloc",
              name);
  return device;
}

/* acc set: `type` is an acc_device_t; NULL for a missing clause. */
PWX_API void pwx_acc_set(int type, const int* number, const long* queue, const pwx_where* where);

/* ---- kernels ---- */

/* The kernel of a compute construct, one static object each. `source` is CUDA C++ with an extern "C"
 * __global__ function `name`. It lacks the prelude (xacc/runtime/kernels: fixed-width types, reductions),
 * which the run-time library puts before it. NVRTC compiles it, and the result is cached on disk. The
 * kernels of a pwx_unit are compiled before the first work on the GPU, others when first launched. */
typedef struct pwx_kernel {
  const char* name;
  const char* source;
  struct pwx_kernel_state* state;
  const unsigned* sizes; /* of the arguments, without reductions; NULL: launched at once, never in a graph */
  /* Of a kernel that can overlap a reflect: the numbers of the arguments that are arrays which the reflect
     must not have, because the kernel may write them or because they are not distributed, and -1. NULL: it
     begins when all work before it has ended. */
  const int* apart;
  /* 1 for a kernel of the run-time library: it includes Peerway's headers, reduces values of several ranks
     (kernels/rank_reduction.cuh), and itself waits for the work before it */
  int reduces_ranks;
} pwx_kernel;

/* The iterations of a kernel. Kernels work with any grid and block, since each dimension is a loop with a
 * stride. `iterations` are those of x, y and z, 1 for a missing dimension. `threads` is the block size in
 * x, from vector_length, or 0. `blocks` is the number of blocks, from num_gangs, or 0. `executor` says who
 * executes an iteration of x: a thread, or the threads of a block or of a warp, which share the inner loop.
 * `y_at_once`: how many iterations of y a thread does at once; 0 is like 1. */
typedef enum pwx_executor { PWX_BY_THREAD, PWX_BY_BLOCK, PWX_BY_WARP } pwx_executor;
typedef struct pwx_shape {
  long iterations[3];
  int threads;
  int blocks;
  pwx_executor executor;
  int y_at_once;
} pwx_shape;

#define PWX_AT_LEAST_0(count) ((count) > 0 ? (count) : 0)

/* Allocates a thread's own copy of memory behind a pointer, for private and firstprivate: `bytes`, copied
 * from `from` (NULL: not copied) from byte `first` on. __attribute__((cleanup(pwx_own_end))) frees it. */
PWX_API void* pwx_own(const void* from, size_t first, size_t bytes, const pwx_where* where);
PWX_API void pwx_own_end(void* own);

/* Returns the address of a variable that a block has a copy of. The compiler must assume that the variable
 * is initialised. */
static inline const void* pwx_outer(const void* variable) {
  __asm__ volatile("" : "+r"(variable) : : "memory");
  return variable;
}

/* The same in a kernel: memory of the GPU for all its threads, whose number is limited by the functions
 * below. */
#define PWX_OWN_THREADS 64 /* in a block */
static inline long pwx_own_blocks(size_t bytes, double iterations) {
  const double most = (double)(256 << 20) / (double)(PWX_OWN_THREADS * (bytes ? bytes : 1));
  const double blocks = iterations / PWX_OWN_THREADS < most ? iterations / PWX_OWN_THREADS : most;
  return blocks > 65535 ? 65535 : (long)blocks + 1;
}
PWX_API void* pwx_scratch(size_t bytes, const pwx_where* where);
/* Frees the memory after the kernel on that queue is done. */
PWX_API void pwx_scratch_end(void* scratch, long queue, const pwx_where* where);

/* The iterations that share a dimension of a grid; an error if 32 bits cannot count them. */
static inline unsigned pwx_iterations(long count, const pwx_where* where) {
  if (count > 0x7fffffff) pwx_error(where, "a loop of %ld iterations; a GPU counts 2147483647 here", count);
  return (unsigned)count;
}

/* A variable of a reduction, whose value before the launch takes part. If `device` is NULL, the host has
 * the result when pwx_launch returns or, with a queue, after waiting for the queue; otherwise the result
 * stays at this device address. The kernel's last parameters are one pwx_total<T> (of the prelude) for
 * each variable, in this order. */
typedef struct pwx_reduction {
  pwx_op op;
  pwx_type type;
  void* host;
  void* device;
} pwx_reduction;

/* Launches a kernel. `arguments` has the address of each argument, as for cuLaunchKernel, without those of
 * the reductions. */
PWX_API void pwx_launch(pwx_kernel* kernel, const pwx_shape* shape, void** arguments, int argument_count,
                        int reduction_count, const pwx_reduction* reductions, long queue,
                        const pwx_where* where);

/* Encloses constructs with nothing between them. The first kernel or plan is launched at once, the others at
 * the end: by one graph launch if the same ones were launched here before with the same arguments. If
 * sequences are nested, only the outermost counts. Each has one static object. */
typedef struct pwx_sequence {
  struct pwx_sequence_state* state;
} pwx_sequence;
PWX_API void pwx_sequence_begin(void);
PWX_API void pwx_sequence_end(pwx_sequence* sequence, const pwx_where* where);

/* A loop of the program whose scalars live on the GPU. The generated code executes its first parts one by
 * one, and reads the loop's state after each; then the run-time library records the parts once, and runs the
 * rest of the loop as one CUDA graph. A loop whose trip count the host knows has no state. Each loop has one
 * static object. */
typedef struct pwx_loop {
  struct pwx_loop_state* state;
  int entered;     /* 1 once the loop's scalars are present on the GPU */
  pwx_known known; /* the copy of the loop's variable `state` on the GPU */
} pwx_loop;

/* What the arithmetic of an iteration leaves in the loop's variable `state` on the GPU. */
typedef enum pwx_loop_part {
  PWX_LOOP_LEFT,  /* the test in the middle ended the loop */
  PWX_LOOP_AGAIN, /* what follows the test, and the part before it again */
  PWX_LOOP_LAST,  /* what follows the test, and no more */
  PWX_LOOP_DONE   /* the condition ended a loop without a test */
} pwx_loop_part;

/* Called before main if a file of the program has such loops. */
PWX_API void pwx_has_loops(void);
/* Returns 1 if such loops run in their form for the GPU: on a GPU, unless the setting acc_loops is `host`. */
PWX_API int pwx_loops_on_gpu(void);
/* `count` is the loop's trip count, from 1 to PWX_MOST_OF_BATCH, or PWX_COUNT_UNKNOWN. A loop with a larger
 * trip count is executed in several batches. */
#ifndef PWX_MOST_OF_BATCH /* tests override it with a small value */
#define PWX_MOST_OF_BATCH (1L << 20)
#endif
enum { PWX_COUNT_UNKNOWN = -1 };
PWX_API void pwx_loop_begin(pwx_loop* loop, long count, const pwx_where* where);
/* Ends a part. Returns what to execute next: PWX_LOOP_AGAIN, PWX_LOOP_LAST, or 0 at the end. `state` is the
 * loop's variable, on the GPU if the process computes there, or NULL if the count is known; `has_rest` 1: the
 * loop has a part behind its test. */
PWX_API int pwx_loop_next(pwx_loop* loop, const int* state, int has_rest, const pwx_where* where);
PWX_API void pwx_loop_end(pwx_loop* loop, const pwx_where* where);

/* As pwx_reduce and pwx_bcast, for values of all nodes that are present at `device`. */
PWX_API void pwx_reduce_device(const pwx_ref* on, pwx_op op, pwx_type type, void* device, size_t count,
                               const pwx_where* where);
/* Has the kernel of such a reduction compiled and loaded together with the kernels of the program. A `set_up`
 * function calls it for each operator and type that the file reduces with acc. */
PWX_API void pwx_preload_reduction(pwx_op op, pwx_type type);
PWX_API void pwx_bcast_device(const pwx_ref* on, const pwx_ref* from, void* device, size_t bytes,
                              const pwx_where* where);

/* A collective gmove of which `sides` are on the GPU. A distributed array must be present there; a local one
 * that is not is taken in host memory. If both are on the GPU, elements go from GPU to GPU in the order of
 * the program's work without a queue, and the host continues at once; each directive has one static object
 * for the plans of that. Else they go through host memory, and afterwards that of the left side is equal. */
typedef struct pwx_gmove_plans {
  struct pwx_gmove_plans_state* state;
} pwx_gmove_plans;
enum { PWX_LEFT_ON_GPU = 1, PWX_RIGHT_ON_GPU = 2 };
PWX_API void pwx_gmove_device(pwx_gmove_plans* plans, int sides, const pwx_section* target,
                              const pwx_section* source, const pwx_where* where);

/* Waits for queues; `count` 0 means all. If `queue` is not PWX_QUEUE_SYNC, that queue waits, and not the
 * host. */
PWX_API void pwx_acc_wait(int count, const long* queues, long queue, const pwx_where* where);

#ifdef __cplusplus
}
#endif
#endif
