/* Peerway: one-sided communication between memories of any device, over the fastest path there is.
 *
 * Four ideas: a region (what: any memory, registered), a path (how: chosen from measured costs), a signal
 * (when: a 64-bit counter that only grows) and a team (who). A rank moves bytes between its own regions and
 * regions that it imported from other ranks by key; the other rank takes no part.
 *
 * A function that can fail returns a pw_status; then pw_error_message() of the calling thread says what was
 * asked, what was found and what to do. The others return a value of an object that must not be NULL. Nothing
 * here exits the process, prints to standard output or waits without end. Functions are safe to call from
 * several threads, but an object must not be freed while another thread uses it. Sizes, offsets and strides
 * are in bytes, times in nanoseconds.
 *
 * The object comes first, then the target of what moves, then the source. Every pw_..._free takes NULL, too,
 * and always frees; what failed on the way it returns. Structs that begin with `size` may grow: set it to the
 * sizeof of the struct, as C++ does by itself. What stays the same between versions is written down in
 * docs/reference/api-stability.md. */
#ifndef PEERWAY_PEERWAY_H
#define PEERWAY_PEERWAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(PEERWAY_BUILD)
#define PW_API __attribute__((visibility("default")))
#else
#define PW_API
#endif

/* Of this header; pw_version() is that of the library. */
#define PW_VERSION_MAJOR 0
#define PW_VERSION_MINOR 1
#define PW_VERSION_PATCH 0
#define PW_VERSION (PW_VERSION_MAJOR * 10000 + PW_VERSION_MINOR * 100 + PW_VERSION_PATCH)

/* Of the binary interface: programs run with every library that has the number which they were built with. */
#define PW_ABI_VERSION 0

/* The first member of a struct that may grow. */
#ifdef __cplusplus
#define PW_SIZE_OF(type) size_t size = sizeof(type)
#else
#define PW_SIZE_OF(type) size_t size
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ---- */

typedef enum pw_status {
  PW_OK = 0,
  PW_TIMEOUT = 1,          /* the time given has passed */
  PW_PEER_LOST = 2,        /* the rank at the other end died or left */
  PW_INVALID_ARGUMENT = 3, /* a value that no call may have */
  PW_OUT_OF_RANGE = 4,     /* past the end of a region, or a rank outside the team */
  PW_BAD_KEY = 5,          /* the bytes are not a key of this version */
  PW_STALE_KEY = 6,        /* the region behind the key was closed */
  PW_FOREIGN_KEY = 7,      /* the key belongs to another job */
  PW_UNSUPPORTED = 8,      /* no path can do this between these two memories */
  PW_UNAVAILABLE = 9,      /* a library, driver or device that was asked for is not here */
  PW_NO_MEMORY = 10,
  PW_DENIED = 11,     /* wrong secret, or the system refuses */
  PW_SYSTEM = 12,     /* a system call failed; the message has errno */
  PW_DEVICE = 13,     /* the device's driver reported an error */
  PW_BAD_TABLE = 14,  /* a route table or rules file that cannot be used */
  PW_BAD_CONFIG = 15, /* a configuration value that cannot be used */
  PW_CLOSED = 16,     /* the context or team was closed while waiting */
  PW_INTERNAL = 17,   /* a defect of Peerway */
  PW_INTERRUPTED = 18 /* a program's own check ended the wait (pw_set_interrupt_check) */
} pw_status;

PW_API const char* pw_status_name(pw_status status); /* "ok", "timeout", "peer_lost", ... */
PW_API const char* pw_error_message(void);           /* of this thread's last failure */
PW_API const char* pw_version(void);                 /* of the library: "0.1.0" */
PW_API int pw_abi_version(void);                     /* PW_ABI_VERSION of the library */

#define PW_FOREVER UINT64_MAX /* a timeout that never passes; the death of a peer still ends the wait */

/* Lets a program end its own waits, as for Ctrl-C. While the calling thread waits in Peerway, `check(user)`
 * is called some 50 times a second; once it returns other than 0 the wait ends with PW_INTERRUPTED. It must
 * not call Peerway. NULL ends that. Signal handlers run during waits in any case: one that sets a flag, and a
 * check that returns it, are enough.
 *
 * What an interrupted wait was for goes on: a wait for a signal, a flush, a finish and a wait for a stream
 * may be repeated. A put or get that was interrupted while it waited for room has moved a part of its bytes;
 * by `staged` and `ucx/staged` nothing more goes to that rank. A collective that was interrupted ends those
 * of its team: each later one, on any rank, fails with PW_INTERRUPTED. */
PW_API void pw_set_interrupt_check(int (*check)(void* user), void* user);

/* ---- team: the processes that communicate ---- */

typedef struct pw_team pw_team;

/* Gives every rank the `bytes` that rank 0 has in `data`. Returns 0 on success. */
typedef int (*pw_broadcast)(void* user, void* data, size_t bytes);

/* The team that `peerway run`, mpirun or srun started this process in; a team of one when none did. */
PW_API pw_status pw_team_from_launcher(pw_team** team);

/* A team over any means that can broadcast a few bytes from rank 0: collective over `size` processes. The
 * header peerway_mpi.h makes one from an MPI communicator. */
PW_API pw_status pw_team_create(int rank, int size, pw_broadcast broadcast, void* user, pw_team** team);
PW_API int pw_team_rank(const pw_team* team);
PW_API int pw_team_size(const pw_team* team);

/* Collective. Every rank gives `bytes` bytes (the same number) and gets size * bytes, in rank order. */
PW_API pw_status pw_team_all_gather(pw_team* team, void* all, const void* mine, size_t bytes,
                                    uint64_t timeout_ns);
PW_API pw_status pw_team_barrier(pw_team* team, uint64_t timeout_ns);

/* `*lost`: 1 when the rank is known to be dead or gone, else 0. */
PW_API pw_status pw_team_lost(const pw_team* team, int rank, int* lost);
PW_API pw_status pw_team_free(pw_team* team);

/* ---- context: devices, routes and connections of one team ---- */

typedef struct pw_context pw_context;

/* Collective over the team. A team that is freed first is left once its contexts are freed. */
PW_API pw_status pw_context_create(pw_team* team, pw_context** context);

/* Ends the context without freeing it: the waits of this process's other threads in it, and of peers for this
 * rank's part of a transfer, return PW_CLOSED, and operations that follow are refused. Closing twice does
 * nothing. */
PW_API pw_status pw_context_close(pw_context* context);

/* Closes and frees it; no thread may be in a call with it. What was made from it stays valid until it is
 * freed itself: memory stays, and calls that would communicate return PW_CLOSED. The threads and connections
 * of the context end with the last of these objects. */
PW_API pw_status pw_context_free(pw_context* context);

/* Restricts the operations that follow to the named paths, comma-separated ("peer/copy,staged"); a name
 * without a method means all its methods ("peer"). NULL or "route" gives the choice back to the route table.
 */
PW_API pw_status pw_context_use(pw_context* context, const char* paths);

/* How the host waits: for signals, for operations to complete, for plans and streams. */
typedef enum pw_wait_policy {
  PW_WAIT_BUSY_POLL = 0, /* it polls: the quickest answer, for a whole core */
  PW_WAIT_BLOCKING = 1,  /* it polls for a few microseconds, then sleeps until it is woken */
} pw_wait_policy;

/* For the waits that begin from now on, in place of the setting `wait`. */
PW_API pw_status pw_context_set_wait_policy(pw_context* context, pw_wait_policy policy);
PW_API pw_wait_policy pw_context_wait_policy(const pw_context* context);

/* ---- region: a registered span of any memory ---- */

typedef struct pw_region pw_region;

typedef enum pw_device_kind { PW_HOST = 0, PW_CUDA = 1 } pw_device_kind;
typedef struct pw_device { /* passed by value: it never grows */
  pw_device_kind kind;
  int32_t index; /* CUDA ordinal in this process; -1: the one bound to this rank (setting `device`) */
} pw_device;

/* New memory that peers on this host can map from the start. Freed by pw_region_free. */
PW_API pw_status pw_allocate(pw_context* context, pw_device device, uint64_t bytes, pw_region** region);

/* Registers memory the caller owns: malloc, mmap, cudaMalloc, a cudaMallocAsync pool, VMM. The memory must
 * stay allocated until pw_region_free. Registering a span again is cheap. */
PW_API pw_status pw_register(pw_context* context, void* address, uint64_t bytes, pw_region** region);

/* Ends the region: peers that still use its key get PW_STALE_KEY. A plan or FIFO that uses a region, a remote
 * or a signal keeps it until it is freed itself. */
PW_API pw_status pw_region_free(pw_region* region);
PW_API void* pw_region_address(const pw_region* region);
PW_API uint64_t pw_region_bytes(const pw_region* region);
PW_API pw_device pw_region_device(const pw_region* region);

/* Writes the key into `key` and its length into `*length`. With too small a `capacity`: PW_OUT_OF_RANGE and
 * the length needed (`key` may be NULL when `capacity` is 0). PW_KEY_MAX bytes are always enough. */
#define PW_KEY_MAX 1024
PW_API pw_status pw_region_key(const pw_region* region, void* key, size_t capacity, size_t* length);

/* ---- remote: another rank's region or signal, imported by key ---- */

typedef struct pw_remote pw_remote;

PW_API pw_status pw_import(pw_context* context, const void* key, size_t length, pw_remote** remote);
PW_API pw_status pw_remote_free(pw_remote* remote);
PW_API int pw_remote_rank(const pw_remote* remote);
PW_API uint64_t pw_remote_bytes(const pw_remote* remote);

/* ---- signal: a 64-bit counter in this rank's memory that peers raise ---- */

typedef struct pw_signal pw_signal;

#define PW_ANY_RANK (-1)

/* `sender` is the one rank that will raise it, or PW_ANY_RANK. Waiting on a signal of one sender is told
 * apart from the death of any other rank.
 *
 * `device` is where its words lie. On PW_HOST the host and plans of any device raise it. In the memory of a
 * GPU its kernels and plans wait without leaving it, and the GPUs of peers raise it over NVLink. Only plans
 * of GPUs and kernels raise it then; a raise by the host, and one from another host, is PW_UNSUPPORTED. The
 * host may wait for it and ask for its value, by copies: some ten microseconds each. */
PW_API pw_status pw_signal_create(pw_context* context, int sender, pw_device device, pw_signal** signal);
PW_API pw_status pw_signal_free(pw_signal* signal);
PW_API pw_status pw_signal_key(const pw_signal* signal, void* key, size_t capacity, size_t* length);

/* Fails where words in GPU memory cannot be read. */
PW_API pw_status pw_signal_value(const pw_signal* signal, uint64_t* value);

/* Returns once the signal is at least `value`. PW_TIMEOUT, PW_PEER_LOST (its sender is lost; with
 * PW_ANY_RANK, any rank) or PW_CLOSED otherwise. */
PW_API pw_status pw_signal_wait(pw_signal* signal, uint64_t value, uint64_t timeout_ns);

/* ---- operations ---- */

/* A put or get is started by the call and goes on by itself. The bytes of the source must not change, and
 * those of the target not be used, before pw_flush of that rank returns, or its request is complete
 * (pw_start_put); or, at the target of a put, before the signal it raises has arrived. */

/* Raise a remote signal by `by` (at least 1) after the data of the same operation is visible at the target. A
 * rank's raises of one signal arrive in the order in which they were started. */
typedef struct pw_raise {
  PW_SIZE_OF(struct pw_raise);
  pw_remote* signal;
  uint64_t by;
} pw_raise;

#define PW_MAX_DIMS 4

/* Blocks of `block_bytes` at regular strides, block by block in the order of the indices, count[0] the
 * slowest. dims = 0 is one block. Strides must be positive, and no two blocks may share a byte; dimensions
 * may nest in any order (column-major is fine) and interleave. PW_INVALID_ARGUMENT tells of blocks that
 * overlap, and of strides that interleave so irregularly that 65536 steps of a search do not tell whether
 * they do: strides that nest, each at least as large as all that the smaller ones span, are always decided.
 */
typedef struct pw_block {
  PW_SIZE_OF(struct pw_block);
  uint64_t offset; /* of the first byte in the region */
  uint64_t block_bytes;
  uint32_t dims; /* 0 to PW_MAX_DIMS */
  uint64_t count[PW_MAX_DIMS];
  int64_t stride[PW_MAX_DIMS];
} pw_block;

PW_API pw_status pw_put(pw_context* context, pw_remote* to, uint64_t to_offset, const pw_region* from,
                        uint64_t from_offset, uint64_t bytes, const pw_raise* raise);
PW_API pw_status pw_get(pw_context* context, pw_region* to, uint64_t to_offset, const pw_remote* from,
                        uint64_t from_offset, uint64_t bytes);

/* The same for block-strided data. Both sides have the same counts and block_bytes, or one of them is
 * contiguous and as large as the other. */
PW_API pw_status pw_put_block(pw_context* context, pw_remote* to, const pw_block* to_block,
                              const pw_region* from, const pw_block* from_block, const pw_raise* raise);
PW_API pw_status pw_get_block(pw_context* context, pw_region* to, const pw_block* to_block,
                              const pw_remote* from, const pw_block* from_block);

PW_API pw_status pw_raise_signal(pw_context* context, const pw_raise* raise);

/* Returns once all that this context started towards `rank` (PW_ANY_RANK: all ranks) is complete at both
 * ends. */
PW_API pw_status pw_flush(pw_context* context, int rank, uint64_t timeout_ns);

/* ---- request: what was started, to be tested and waited for ---- */

/* Stands for one operation, or for all towards a rank. It is complete when they are complete at both ends, or
 * have failed. An operation does not need its request: freed early, it goes on. */
typedef struct pw_request pw_request;

/* As pw_put_block, pw_get_block and pw_raise_signal, and what stands for the operation with its raise. It may
 * be complete only after what was started before it on the same paths. */
PW_API pw_status pw_start_put(pw_context* context, pw_remote* to, const pw_block* to_block,
                              const pw_region* from, const pw_block* from_block, const pw_raise* raise,
                              pw_request** request);
PW_API pw_status pw_start_get(pw_context* context, pw_region* to, const pw_block* to_block,
                              const pw_remote* from, const pw_block* from_block, pw_request** request);
PW_API pw_status pw_start_raise(pw_context* context, const pw_raise* raise, pw_request** request);

/* For all that this context has started towards `rank` (PW_ANY_RANK: all ranks) so far: a flush that does not
 * wait. */
PW_API pw_status pw_start_flush(pw_context* context, int rank, pw_request** request);

/* Moves things on and says whether it is complete: `*complete` is 1 or 0. Returns how it ended once it is, at
 * every call; PW_OK before. */
PW_API pw_status pw_request_test(pw_request* request, int* complete);

/* Returns how it ended, or PW_TIMEOUT: then it goes on. */
PW_API pw_status pw_request_wait(pw_request* request, uint64_t timeout_ns);

/* Returns once one of `count` requests of one context is complete: `*index` is the first such, and the status
 * is how that one ended. PW_TIMEOUT, PW_CLOSED and PW_INTERRUPTED leave `*index` at `count`. */
PW_API pw_status pw_request_wait_any(pw_request* const* requests, size_t count, uint64_t timeout_ns,
                                     size_t* index);

/* Returns once all are complete: PW_OK, or how the first in the list that failed has ended. */
PW_API pw_status pw_request_wait_all(pw_request* const* requests, size_t count, uint64_t timeout_ns);
PW_API pw_status pw_request_free(pw_request* request);

/* ---- stream: an ordered queue of work on a device ---- */

typedef struct pw_stream { /* passed by value: it never grows */
  pw_device device;
  void* queue; /* cuda: a cudaStream_t of that device, NULL is its default stream; host: from pw_stream_create
                */
} pw_stream;

/* A new stream: on the host a worker thread with a queue, on cuda a non-blocking CUDA stream. */
PW_API pw_status pw_stream_create(pw_context* context, pw_device device, pw_stream* stream);

/* Waits for all that was enqueued, and frees a stream that pw_stream_create made, before its context. */
PW_API pw_status pw_stream_free(pw_context* context, pw_stream stream);

/* Runs `call(user)` on a thread of the host in the stream's order. It must not call CUDA. */
PW_API pw_status pw_stream_call(pw_context* context, pw_stream stream, void (*call)(void* user), void* user);

/* Returns once all that was enqueued is done. Whether plans in it were cancelled, pw_plan_status tells. */
PW_API pw_status pw_stream_wait(pw_context* context, pw_stream stream, uint64_t timeout_ns);

/* ---- plan: a prepared communication, started many times ---- */

/* A plan holds operations of one rank. A builder takes them, pw_plan_builder_prepare makes the plan. A start
 * makes them all as one batch, a finish waits for what its waits and receives name; the n-th finish belongs
 * to the n-th start. Both can be done from the host, in the order of a stream, and from inside a kernel
 * (peerway/device.cuh), in any mixture.
 *
 * Between a start and the finish that belongs to it the sources must not change and the targets not be used.
 * A start comes after the finish of the start before. On one stream that is a matter of the order of calls;
 * across streams, graphs and the blocks of a kernel the program sees to it, as it does for kernels that share
 * memory. */
typedef struct pw_plan_builder pw_plan_builder;
typedef struct pw_plan pw_plan;

/* `device` is where the plan is started: the regions of its operations, on this side, are memory of it. */
PW_API pw_status pw_plan_builder_create(pw_context* context, pw_device device, pw_plan_builder** builder);

/* One-sided operations: nobody at the other end has to have a plan. A plan owns the signals that it raises:
 * until it is freed, other raises of them by this rank are refused. */
PW_API pw_status pw_plan_builder_put(pw_plan_builder* builder, pw_remote* to, const pw_block* to_block,
                                     const pw_region* from, const pw_block* from_block,
                                     const pw_raise* raise);
PW_API pw_status pw_plan_builder_get(pw_plan_builder* builder, pw_region* to, const pw_block* to_block,
                                     const pw_remote* from, const pw_block* from_block);

/* Every start raises the signal, before it waits for anything. */
PW_API pw_status pw_plan_builder_raise(pw_plan_builder* builder, const pw_raise* raise);

/* Start n moves nothing before the signal has grown by (n - lead) * by since the plan was prepared: what
 * keeps a fast sender from overrunning a slow receiver. lead 0: the receiver raises it as it starts, lead 1:
 * when it has used what came. */
PW_API pw_status pw_plan_builder_after(pw_plan_builder* builder, pw_signal* signal, uint64_t lead,
                                       uint64_t by);

/* Finish n waits until the signal has grown by n * by since the plan was prepared. */
PW_API pw_status pw_plan_builder_wait(pw_plan_builder* builder, pw_signal* signal, uint64_t by);

/* Two-sided operations: a send of one rank's plan and the receive with the same tag of the other rank's plan
 * are joined when both are prepared, and move as many bytes. The plan keeps them in step: a receive of epoch
 * n is not overwritten by the send of epoch n + 1 before the receiving plan has started n + 1. Sending to
 * oneself is a copy. Tags are chosen by the program; the pair of ranks, the tag and the direction must be
 * unique within a plan. */
PW_API pw_status pw_plan_builder_send(pw_plan_builder* builder, int rank, int tag, const pw_region* from,
                                      const pw_block* block);
PW_API pw_status pw_plan_builder_receive(pw_plan_builder* builder, int rank, int tag, pw_region* to,
                                         const pw_block* block);

/* Fixes everything: paths, mappings, tables for the device. Collective over the team, also for ranks that
 * have nothing to send or receive, unless no rank's plan holds a send or receive: then `alone` is 1 and
 * nobody else takes part. The builder makes one plan; afterwards it is of no use but to be freed. */
PW_API pw_status pw_plan_builder_prepare(pw_plan_builder* builder, int alone, pw_plan** plan);

/* The same, collective over these `count` ranks alone, in any order: the sends and receives are with ranks of
 * the list. Plans of one set of ranks are prepared in the same order by all of the set. When one cannot, the
 * others get its error as with pw_plan_builder_prepare. */
PW_API pw_status pw_plan_builder_prepare_among(pw_plan_builder* builder, const int* ranks, size_t count,
                                               pw_plan** plan);
PW_API pw_status pw_plan_builder_free(pw_plan_builder* builder);

/* From the host. A start while an earlier one is not finished is refused (PW_INVALID_ARGUMENT), as is a
 * finish of what was started neither from the host nor on a stream. `request` stands for the finish: testing
 * or waiting for it finishes the plan, unless pw_plan_finish did. NULL: none is wanted. */
PW_API pw_status pw_plan_start(pw_plan* plan, pw_request** request);
PW_API pw_status pw_plan_finish(pw_plan* plan, uint64_t timeout_ns);

/* In the order of a stream of the plan's device; returns at once. A stream that is being captured into a CUDA
 * graph captures it: N replays are N starts. pw_plan_run_on is a start and the finish that belongs to it as
 * one piece of work. Waits in a stream end when a rank that the plan depends on is lost or the plan's timeout
 * passes: the plan is then cancelled and the stream goes on. */
PW_API pw_status pw_plan_start_on(pw_plan* plan, pw_stream stream);
PW_API pw_status pw_plan_finish_on(pw_plan* plan, pw_stream stream);
PW_API pw_status pw_plan_run_on(pw_plan* plan, pw_stream stream);

/* Bounds each wait of the plan in streams and kernels; the setting `plan_timeout` until called. */
PW_API pw_status pw_plan_set_timeout(pw_plan* plan, uint64_t timeout_ns);

/* PW_OK, or why the plan was cancelled: PW_PEER_LOST, PW_TIMEOUT, PW_CLOSED, PW_DEVICE. A cancelled plan does
 * nothing any more. */
PW_API pw_status pw_plan_status(pw_plan* plan);

/* What a kernel needs to start and finish the plan, by value (peerway/handles.h). */
struct pw_plan_handle;
PW_API pw_status pw_plan_get_handle(pw_plan* plan, struct pw_plan_handle* handle);

/* This rank's end of one send (`sends` 1) or receive (0) of a prepared plan, by which a kernel moves its
 * packets itself: a kernel that pushes what it computes. Only for lanes that go by packets (PW_UNSUPPORTED
 * else); such a plan is used through its lanes alone, or started and finished, never both. */
struct pw_lane_handle;
PW_API pw_status pw_plan_get_lane(pw_plan* plan, int sends, int rank, int tag, struct pw_lane_handle* handle);

/* The plan must not be under way; graphs and kernels that hold it must not run any more. */
PW_API pw_status pw_plan_free(pw_plan* plan);

/* ---- kernels: one-sided operations without a plan (peerway/device.cuh) ---- */

/* What kernels of `device`, a GPU, need to put into a remote region, raise a remote signal and wait for one
 * of this rank, by value. PW_UNSUPPORTED when that GPU does not reach it. Good until the remote or signal is
 * freed, which must be after the last kernel that has the handle. */
struct pw_remote_handle;
struct pw_raise_handle;
struct pw_signal_handle;
PW_API pw_status pw_remote_get_handle(pw_remote* remote, pw_device device, struct pw_remote_handle* handle);

/* From here on kernels of that GPU alone raise the signal: other raises of this rank are refused, like those
 * of a signal that a plan raises. One kernel, and one scope of it, at a time.
 * pw_remote_release_raise_handle, once no kernel runs that has the handle, ends that. */
PW_API pw_status pw_remote_get_raise_handle(pw_remote* signal, pw_device device,
                                            struct pw_raise_handle* handle);
PW_API pw_status pw_remote_release_raise_handle(pw_remote* signal);

/* Each wait ends after `timeout_ns`, when the signal's sender (of any rank: any) is lost, or when the context
 * is closed; pw_signal_status then says why, until the next handle of the signal is made. Kernels of one GPU
 * only may have handles of a signal. */
PW_API pw_status pw_signal_get_handle(pw_signal* signal, pw_device device, uint64_t timeout_ns,
                                      struct pw_signal_handle* handle);
PW_API pw_status pw_signal_status(const pw_signal* signal);

/* ---- fifo: puts that kernels have done for them ---- */

/* Kernels of `device` post puts to `remotes` (regions of other ranks, and signals to raise behind the data)
 * of this rank's `regions`, by their places in these lists; the proxy does them over whatever path there is.
 * It serves ranks whose memory the device cannot map, and any other. `entries`, a power of two from 2 to
 * 65536, may be under way at once; then kernels wait. An entry that leaves its regions, or a rank that is
 * lost, cancels the FIFO. */
typedef struct pw_fifo pw_fifo;
struct pw_fifo_handle;
PW_API pw_status pw_fifo_create(pw_context* context, pw_remote* const* remotes, uint32_t remote_count,
                                pw_region* const* regions, uint32_t region_count, pw_device device,
                                uint32_t entries, pw_fifo** fifo);
PW_API pw_status pw_fifo_get_handle(pw_fifo* fifo, struct pw_fifo_handle* handle);

/* PW_OK, or why it was cancelled. */
PW_API pw_status pw_fifo_status(pw_fifo* fifo);

/* No kernel may use it any more. What was posted and is not complete may be dropped. */
PW_API pw_status pw_fifo_free(pw_fifo* fifo);

/* ---- halo: the boundary layers of distributed arrays ---- */

#define PW_MAX_ARRAY_DIMS 7

/* Ranks 0 to product - 1 of the team in a grid, the last dimension the fastest. */
typedef struct pw_grid {
  PW_SIZE_OF(struct pw_grid);
  uint32_t dims; /* 1 to PW_MAX_DIMS */
  uint32_t extent[PW_MAX_DIMS];
} pw_grid;

/* The part of `extent` elements that is `index`'s of `parts` in a block distribution: all blocks are
 * ceil(extent / parts) long but the last ones, which are shorter or empty. */
PW_API pw_status pw_grid_block(uint64_t extent, uint32_t parts, uint32_t index, uint64_t* first,
                               uint64_t* count);

/* One dimension of a distributed array, in elements. It grows with pw_array only. */
typedef struct pw_array_dim {
  uint64_t extent;    /* of the whole array, over all ranks */
  int32_t grid_dim;   /* the dimension of the grid that it is distributed over; -1: every rank has all */
  uint32_t periodic;  /* 1: the first element follows the last */
  uint64_t shadow[2]; /* layers below and above that this rank's memory holds */
  uint64_t width[2];  /* layers to refresh, at most the shadow; the outer ones stay untouched */
  int64_t stride;     /* bytes from element to element; 0 in all dimensions: dense, the last the fastest */
} pw_array_dim;

typedef struct pw_array {
  PW_SIZE_OF(struct pw_array);
  pw_region* region;
  uint64_t offset;        /* in the region, of the first byte of this rank's part with its shadow */
  uint64_t element_bytes; /* of any trivially copyable type */
  uint32_t dims;          /* 1 to PW_MAX_ARRAY_DIMS */
  pw_array_dim dim[PW_MAX_ARRAY_DIMS];
} pw_array;

/* A plan that refreshes the halos of all `count` arrays at once: every face goes straight from its owner to
 * the neighbour's halo. `corners` 0: faces only; 1: edges and corners, too. Collective; prepared. The arrays
 * lie in memory of one device. It is started and finished like any plan: between the two, elements that no
 * halo touches may be computed. */
PW_API pw_status pw_halo_create(pw_context* context, const pw_array* arrays, uint32_t count,
                                const pw_grid* grid, int corners, pw_plan** plan);

#ifdef __cplusplus
}
#endif
#endif
