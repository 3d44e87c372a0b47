/* Peerway: one-sided communication between memories of any device, over the fastest path there is.
 *
 * Four ideas: a region (what: any memory, registered), a path (how: chosen from measured costs), a signal
 * (when: a 64-bit counter that only grows) and a team (who). A rank moves bytes between its own regions and
 * regions that it imported from other ranks by key; the other rank takes no part.
 *
 * A function that can fail returns a pw_status. If it is not PW_OK, pw_error_message() returns what was
 * asked, what was found and what to do. The other functions read a property of an object, which must not be
 * NULL. Peerway never exits the process or prints to standard output. Every wait ends: when a rank that it
 * depends on dies, when its timeout passes, or when the context is closed.
 *
 * All functions may be called from several threads at once, but an object must not be freed while another
 * thread uses it. Sizes, offsets and strides are in bytes, times in nanoseconds.
 *
 * Parameters: the object comes first, then the target of a transfer, then its source. Every pw_..._free
 * accepts NULL and always frees; the status that it returns reports what failed on the way. Structs that
 * begin with `size` may grow in later versions: set it to the sizeof of the struct (in C++ it sets itself).
 * docs/reference/api-stability.md states what stays the same between versions. */
#ifndef PEERWAY_PEERWAY_H
#define PEERWAY_PEERWAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(PEERWAY_BUILD)
#define PW_API __attribute__((visibility("default")))
#else
#define PW_API
#endif

/* The version of this header. pw_version() returns that of the library. */
#define PW_VERSION_MAJOR 0
#define PW_VERSION_MINOR 1
#define PW_VERSION_PATCH 0
#define PW_VERSION (PW_VERSION_MAJOR * 10000 + PW_VERSION_MINOR * 100 + PW_VERSION_PATCH)

/* The version of the binary interface. A program runs with every library whose pw_abi_version() is the number
 * that the program was compiled with. */
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
  PW_TIMEOUT = 1,          /* the timeout has passed */
  PW_PEER_LOST = 2,        /* the rank at the other end died or left */
  PW_INVALID_ARGUMENT = 3, /* an argument that is never valid, or not now */
  PW_OUT_OF_RANGE = 4,     /* past the end of a region, or a rank outside the team */
  PW_BAD_KEY = 5,          /* the bytes are not a key, or one of another version */
  PW_STALE_KEY = 6,        /* the region behind the key was closed */
  PW_FOREIGN_KEY = 7,      /* the key belongs to another job */
  PW_UNSUPPORTED = 8,      /* no path can do this between these two memories */
  PW_UNAVAILABLE = 9,      /* a library, driver or device is missing on this machine */
  PW_NO_MEMORY = 10,
  PW_DENIED = 11,     /* wrong secret, or the operating system refused */
  PW_SYSTEM = 12,     /* a system call failed; the message has errno */
  PW_DEVICE = 13,     /* the device's driver reported an error */
  PW_BAD_TABLE = 14,  /* a route table or rules file that cannot be used */
  PW_BAD_CONFIG = 15, /* a configuration value that cannot be used */
  PW_CLOSED = 16,     /* the context or team was closed while waiting */
  PW_INTERNAL = 17,   /* a defect of Peerway */
  PW_INTERRUPTED = 18 /* the program's own check ended the wait (pw_set_interrupt_check) */
} pw_status;

PW_API const char* pw_status_name(pw_status status); /* "ok", "timeout", "peer_lost", ... */
PW_API const char* pw_error_message(void); /* the calling thread's last failure; valid until its next */
PW_API const char* pw_version(void);       /* version of the library: "0.1.0" */
PW_API int pw_abi_version(void);           /* PW_ABI_VERSION of the library */

#define PW_FOREVER UINT64_MAX /* no timeout; the death of a peer still ends the wait */

/* Lets a program end its own waits, for example on Ctrl-C. It applies to the calling thread: while that
 * thread waits in Peerway, Peerway calls `check(user)` about 50 times a second, and once `check` returns
 * non-zero the wait ends with PW_INTERRUPTED. `check` must not call Peerway. NULL removes it. Signal handlers
 * run during waits in any case, so a handler that sets a flag and a check that returns it are enough.
 *
 * Operations go on when a wait for them is interrupted: a wait for a signal, a request or a stream, a flush
 * and a finish may be repeated. An interrupted collective ends the collectives of its team: each later one,
 * on any rank, fails with PW_INTERRUPTED. */
PW_API void pw_set_interrupt_check(int (*check)(void* user), void* user);

/* ---- team: the processes that communicate ---- */

typedef struct pw_team pw_team;

/* Copies the `bytes` bytes that rank 0 has in `data` into `data` at every other rank. Returns 0 on
 * success. */
typedef int (*pw_broadcast)(void* user, void* data, size_t bytes);

/* The team that `peerway run`, mpirun or srun started this process in; a team of one when none did. */
PW_API pw_status pw_team_from_launcher(pw_team** team);

/* A team of `size` processes over any means that can broadcast a few bytes from rank 0. Collective.
 * `broadcast` may be NULL if `size` is 1. peerway_mpi.h makes a team from an MPI communicator. */
PW_API pw_status pw_team_create(int rank, int size, pw_broadcast broadcast, void* user, pw_team** team);
PW_API int pw_team_rank(const pw_team* team);
PW_API int pw_team_size(const pw_team* team);

/* Collective. Every rank passes the same number of bytes in `mine`; `all` receives size * bytes, in rank
 * order.
 *
 * A collective of a team that ends with PW_TIMEOUT is still under way. The same call with the same bytes,
 * repeated, waits for its end; until then any other collective of the team fails with
 * PW_INVALID_ARGUMENT and names both calls. */
PW_API pw_status pw_team_all_gather(pw_team* team, void* all, const void* mine, size_t bytes,
                                    uint64_t timeout_ns);

/* Takes what one rank passed; `part` is valid during the call. It must not call Peerway. */
typedef void (*pw_take_part)(void* user, int rank, const void* part, size_t bytes);

/* Collective. Ranks may pass different numbers of bytes in `mine`. Before it returns PW_OK it calls `take`
 * for each rank, in rank order; if it fails it never calls `take`. */
PW_API pw_status pw_team_all_gather_parts(pw_team* team, const void* mine, size_t bytes, pw_take_part take,
                                          void* user, uint64_t timeout_ns);
PW_API pw_status pw_team_barrier(pw_team* team, uint64_t timeout_ns);

/* Sets `*lost` to 1 if the rank is known to have died or left, else to 0. */
PW_API pw_status pw_team_lost(const pw_team* team, int rank, int* lost);

/* Leaves the team. If contexts of it are still open, the rank leaves when the last of them is freed. */
PW_API pw_status pw_team_free(pw_team* team);

/* ---- context: devices, routes and connections of one team ---- */

typedef struct pw_context pw_context;

/* Collective over the team. The context keeps the team: the team may be freed first. */
PW_API pw_status pw_context_create(pw_team* team, pw_context** context);

/* Ends communication without freeing the context. Waits of other threads in this context return PW_CLOSED, as
 * do peers' waits for this rank's part of a transfer. Later operations return PW_CLOSED, too. A second close
 * does nothing. */
PW_API pw_status pw_context_close(pw_context* context);

/* Closes the context and frees it; no thread may be in a call with it. Objects made from it stay valid until
 * they are freed themselves: their memory stays, and calls that would communicate return PW_CLOSED. The
 * context's threads and connections end with the last of these objects. */
PW_API pw_status pw_context_free(pw_context* context);

/* Restricts later operations to the named paths, separated by commas ("peer/copy,staged"). A name without its
 * second part ("peer") allows all paths that begin with it. NULL or "route" lets the route table choose
 * again. */
PW_API pw_status pw_context_use(pw_context* context, const char* paths);

/* How the host waits: for signals, for operations to complete, for plans and streams. */
typedef enum pw_wait_policy {
  PW_WAIT_BUSY_POLL = 0, /* polls: the lowest latency, and a whole core */
  PW_WAIT_BLOCKING = 1,  /* polls for a few microseconds, then sleeps until woken */
} pw_wait_policy;

/* Applies to waits that begin after the call. Until the first call the setting `wait` applies. */
PW_API pw_status pw_context_set_wait_policy(pw_context* context, pw_wait_policy policy);
PW_API pw_wait_policy pw_context_wait_policy(const pw_context* context);

/* ---- region: a registered range of any memory ---- */

typedef struct pw_region pw_region;

typedef enum pw_device_kind { PW_HOST = 0, PW_CUDA = 1, PW_HIP = 2 } pw_device_kind;
typedef struct pw_device { /* passed by value: it never grows */
  pw_device_kind kind;
  int32_t index; /* CUDA or HIP ordinal in this process; -1: the one bound to this rank (setting `device`) */
} pw_device;

/* Allocates and registers memory that peers on this host can map. The memory stays until pw_region_free. */
PW_API pw_status pw_region_allocate(pw_context* context, pw_device device, uint64_t bytes,
                                    pw_region** region);

/* Registers memory that the caller owns: from malloc, mmap, cudaMalloc, a cudaMallocAsync pool, or CUDA's
 * virtual memory management. The memory must stay allocated until pw_region_free. Registering the same range
 * again is cheap. */
PW_API pw_status pw_region_register(pw_context* context, void* address, uint64_t bytes, pw_region** region);

typedef enum pw_access {
  PW_READ_WRITE = 0,
  PW_READ_ONLY = 1, /* a source only */
} pw_access;

/* The same for memory that may not be written. The region is a source of puts and of peers' gets. Whatever
 * would write to it returns PW_INVALID_ARGUMENT: a get of this rank, a peer's put (the key carries the
 * access), a plan that receives into it. */
PW_API pw_status pw_region_register_read_only(pw_context* context, const void* address, uint64_t bytes,
                                              pw_region** region);

/* Ends the region: operations of peers that still use its key return PW_STALE_KEY. A plan or FIFO that uses a
 * region, a remote or a signal keeps it alive until the plan or FIFO is freed. */
PW_API pw_status pw_region_free(pw_region* region);
PW_API void* pw_region_address(const pw_region* region);
PW_API uint64_t pw_region_bytes(const pw_region* region);
PW_API pw_device pw_region_device(const pw_region* region);
PW_API pw_access pw_region_access(const pw_region* region);

/* Writes the key into `key` and its length into `*length`. If `capacity` is too small, returns
 * PW_OUT_OF_RANGE and sets `*length` to the length needed; `key` may be NULL if `capacity` is 0. PW_KEY_MAX
 * bytes are always enough. */
#define PW_KEY_MAX 1024
PW_API pw_status pw_region_key(const pw_region* region, void* key, size_t capacity, size_t* length);

/* ---- remote: another rank's region or signal, imported by key ---- */

typedef struct pw_remote pw_remote;

PW_API pw_status pw_remote_import(pw_context* context, const void* key, size_t length, pw_remote** remote);
PW_API pw_status pw_remote_free(pw_remote* remote);
PW_API int pw_remote_rank(const pw_remote* remote);
PW_API uint64_t pw_remote_bytes(const pw_remote* remote);
PW_API pw_access pw_remote_access(const pw_remote* remote); /* as the owner registered it */

/* ---- signal: a 64-bit counter in this rank's memory that peers notify ---- */

/* To notify a signal is to add to its counter; the owner waits until the counter is large enough. */

typedef struct pw_signal pw_signal;

#define PW_ANY_RANK (-1)

/* `sender` is the only rank that will notify the signal, or PW_ANY_RANK. A wait on a signal with one sender
 * ends early only if that rank dies; with PW_ANY_RANK the death of any rank ends it.
 *
 * `device` is where the signal lies. On PW_HOST it can be notified by the host and by plans of any device. In
 * the memory of a GPU, kernels and plans of that GPU wait for it without leaving GPU memory, and peers' GPUs
 * notify it over NVLink. Only kernels and plans of GPUs can notify such a signal: a notification by the host,
 * or from another host, returns PW_UNSUPPORTED. The host can still wait for it and read it, by copies of
 * about ten microseconds each. */
PW_API pw_status pw_signal_create(pw_context* context, int sender, pw_device device, pw_signal** signal);
PW_API pw_status pw_signal_free(pw_signal* signal);
PW_API pw_status pw_signal_key(const pw_signal* signal, void* key, size_t capacity, size_t* length);

/* Sets `*value` to the present value. Fails only if the signal lies in GPU memory and cannot be read. */
PW_API pw_status pw_signal_value(const pw_signal* signal, uint64_t* value);

/* Returns PW_OK once the signal is at least `value`; else PW_TIMEOUT, PW_PEER_LOST (the sender died or left;
 * with PW_ANY_RANK, any rank) or PW_CLOSED. */
PW_API pw_status pw_signal_wait(pw_signal* signal, uint64_t value, uint64_t timeout_ns);

/* ---- operations ---- */

/* A call starts a put or get and does not wait for other ranks; the transfer goes on by itself. Until it is
 * complete, the source must not change and the target must not be used. For the initiator a transfer is
 * complete when pw_flush of that rank returns or when its request is complete (pw_start_put). For the target
 * of a put it is complete when the signal that the put notifies has arrived. */

/* Notifies a remote signal: adds `by` (at least 1) to it once the data of the same operation is visible at
 * the target. Notifications of one signal by one rank arrive in the order in which they were started. */
typedef struct pw_notification {
  PW_SIZE_OF(struct pw_notification);
  pw_remote* signal;
  uint64_t by;
} pw_notification;

#define PW_MAX_DIMS 4

/* Blocks of `block_bytes` bytes at regular strides. The blocks are moved in the order of their indices;
 * count[0] is the slowest dimension, and dims = 0 is a single block. Strides must be positive, and no two
 * blocks may share a byte. Dimensions may nest in any order (column-major is fine) and may interleave.
 *
 * Blocks that overlap are refused with PW_INVALID_ARGUMENT, as are strides that interleave so irregularly
 * that a search of 65536 steps cannot tell whether blocks overlap. The search always succeeds if each stride
 * is at least as large as the span of all smaller ones. */
typedef struct pw_block {
  PW_SIZE_OF(struct pw_block);
  uint64_t offset; /* of the first block's first byte in the region */
  uint64_t block_bytes;
  uint32_t dims; /* 0 to PW_MAX_DIMS */
  uint64_t count[PW_MAX_DIMS];
  int64_t stride[PW_MAX_DIMS];
} pw_block;

PW_API pw_status pw_put(pw_context* context, pw_remote* to, uint64_t to_offset, const pw_region* from,
                        uint64_t from_offset, uint64_t bytes, const pw_notification* notification);
PW_API pw_status pw_get(pw_context* context, pw_region* to, uint64_t to_offset, const pw_remote* from,
                        uint64_t from_offset, uint64_t bytes);

/* The same for block-strided data. Both sides have the same counts and block_bytes, or one of them is
 * contiguous and has the same total size. */
PW_API pw_status pw_put_block(pw_context* context, pw_remote* to, const pw_block* to_block,
                              const pw_region* from, const pw_block* from_block,
                              const pw_notification* notification);
PW_API pw_status pw_get_block(pw_context* context, pw_region* to, const pw_block* to_block,
                              const pw_remote* from, const pw_block* from_block);

/* Notifies a signal after all puts and gets that this context has started towards its owner, on any path. It
 * does not wait for them. */
PW_API pw_status pw_notify(pw_context* context, const pw_notification* notification);

/* Returns once all operations that this context started towards `rank` (PW_ANY_RANK: all ranks) are complete
 * at both ends. */
PW_API pw_status pw_flush(pw_context* context, int rank, uint64_t timeout_ns);

/* ---- request: one started operation, to be tested and waited for ---- */

/* Stands for one operation, for all operations towards a rank, or for a plan's finish. It is complete when
 * these are complete at both ends or have failed. Freeing a request early does not end its operation. */
typedef struct pw_request pw_request;

/* Like pw_put_block, pw_get_block and pw_notify, with a request for the operation and its notification. The
 * request may complete only after earlier operations on the same paths to the same rank. If nothing was
 * started, the call returns a failure and leaves `*request` alone. */
PW_API pw_status pw_start_put(pw_context* context, pw_remote* to, const pw_block* to_block,
                              const pw_region* from, const pw_block* from_block,
                              const pw_notification* notification, pw_request** request);
PW_API pw_status pw_start_get(pw_context* context, pw_region* to, const pw_block* to_block,
                              const pw_remote* from, const pw_block* from_block, pw_request** request);
PW_API pw_status pw_start_notify(pw_context* context, const pw_notification* notification,
                                 pw_request** request);

/* A flush that does not wait: the request stands for all operations that this context has started towards
 * `rank` (PW_ANY_RANK: all ranks) so far. */
PW_API pw_status pw_start_flush(pw_context* context, int rank, pw_request** request);

/* Makes progress, then sets `*complete` to 1 or 0. Returns PW_OK until the request is complete, and from then
 * on, at every call, the status of its operation. */
PW_API pw_status pw_request_test(pw_request* request, int* complete);

/* Returns the status of the operation once it is complete. After PW_TIMEOUT the operation goes on. */
PW_API pw_status pw_request_wait(pw_request* request, uint64_t timeout_ns);

/* Returns once one of `count` requests of one context is complete: sets `*index` to the first that is, and
 * returns the status of its operation. PW_TIMEOUT, PW_CLOSED and PW_INTERRUPTED set `*index` to `count`. */
PW_API pw_status pw_request_wait_any(pw_request* const* requests, size_t count, uint64_t timeout_ns,
                                     size_t* index);

/* Returns once all are complete: PW_OK, or the status of the first in the list that failed. */
PW_API pw_status pw_request_wait_all(pw_request* const* requests, size_t count, uint64_t timeout_ns);
PW_API pw_status pw_request_free(pw_request* request);

/* ---- stream: an ordered queue of work on a device ---- */

typedef struct pw_stream { /* passed by value: it never grows */
  pw_device device;
  void* queue; /* cuda: a cudaStream_t, NULL: the default stream; host: from pw_stream_create */
} pw_stream;

/* Makes a stream: on the host a worker thread with a queue, on cuda a non-blocking CUDA stream. */
PW_API pw_status pw_stream_create(pw_context* context, pw_device device, pw_stream* stream);

/* Waits for all work in the stream, then frees it. Only for streams that pw_stream_create made, and before
 * their context is freed. */
PW_API pw_status pw_stream_free(pw_context* context, pw_stream stream);

/* Enqueues a call of `call(user)`, which runs on a host thread in the stream's order. `call` must not call
 * CUDA. */
PW_API pw_status pw_stream_call(pw_context* context, pw_stream stream, void (*call)(void* user), void* user);

/* Returns once all work in the stream is done. pw_plan_status reports whether a plan in it was cancelled. */
PW_API pw_status pw_stream_wait(pw_context* context, pw_stream stream, uint64_t timeout_ns);

/* ---- plan: a prepared communication, started many times ---- */

/* A plan holds operations of one rank. A builder collects them, and pw_plan_builder_prepare makes the plan. A
 * start issues all operations as one batch; a finish waits for the plan's waits and receives. The n-th finish
 * belongs to the n-th start. Starts and finishes can be made from the host, in the order of a stream, and
 * inside a kernel (peerway/device.cuh), in any mixture.
 *
 * Between a start and its finish the sources must not change and the targets must not be used. Each start
 * must come after the previous finish. On one stream the order of the calls ensures that. Across streams,
 * graphs and the blocks of a kernel the program must ensure it, as for any kernels that share memory. */
typedef struct pw_plan_builder pw_plan_builder;
typedef struct pw_plan pw_plan;

/* `device` is where the plan runs. The local regions of its operations must lie in memory of that device. */
PW_API pw_status pw_plan_builder_create(pw_context* context, pw_device device, pw_plan_builder** builder);

/* One-sided operations: the other rank needs no plan. While a plan exists, this rank can notify the plan's
 * signals only through it; other notifications are refused. */
PW_API pw_status pw_plan_builder_put(pw_plan_builder* builder, pw_remote* to, const pw_block* to_block,
                                     const pw_region* from, const pw_block* from_block,
                                     const pw_notification* notification);
PW_API pw_status pw_plan_builder_get(pw_plan_builder* builder, pw_region* to, const pw_block* to_block,
                                     const pw_remote* from, const pw_block* from_block);

/* Notifies the signal at every start, before the plan waits for anything and before its puts: it tells the
 * signal's owner that this rank is ready, not that data has arrived. */
PW_API pw_status pw_plan_builder_notify(pw_plan_builder* builder, const pw_notification* notification);

/* Start n moves nothing until the signal has grown by (n - lead) * by since the plan was prepared. This keeps
 * a fast sender from overrunning a slow receiver: with lead 0 the receiver notifies the signal when it
 * starts, with lead 1 when it has used the previous data. */
PW_API pw_status pw_plan_builder_after(pw_plan_builder* builder, pw_signal* signal, uint64_t lead,
                                       uint64_t by);

/* Finish n waits until the signal has grown by n * by since the plan was prepared. */
PW_API pw_status pw_plan_builder_wait(pw_plan_builder* builder, pw_signal* signal, uint64_t by);

/* Two-sided operations: when the plans are prepared, a send is matched with the receive of the same tag in
 * the other rank's plan; both must have the same size. The plan keeps the two in step: the send of epoch n +
 * 1 does not overwrite what was received in epoch n before the receiving plan has started n + 1. A rank may
 * send to itself, which is a copy. The program chooses the tags; within a plan a tag may be used once for
 * each other rank and direction. */
PW_API pw_status pw_plan_builder_send(pw_plan_builder* builder, int rank, int tag, const pw_region* from,
                                      const pw_block* block);
PW_API pw_status pw_plan_builder_receive(pw_plan_builder* builder, int rank, int tag, pw_region* to,
                                         const pw_block* block);

typedef enum pw_prepare_mode { PW_PREPARE_COLLECTIVE = 0, PW_PREPARE_ALONE = 1 } pw_prepare_mode;

/* Fixes paths, mappings and tables for the device. Collective over the team, and ranks that send and receive
 * nothing must call it, too. Exception: if no rank's plan has a send or receive, pass PW_PREPARE_ALONE, and
 * no other rank takes part. A builder makes one plan; afterwards it can only be freed. */
PW_API pw_status pw_plan_builder_prepare(pw_plan_builder* builder, pw_prepare_mode mode, pw_plan** plan);

/* Like pw_plan_builder_prepare, but collective only over the `count` ranks in `ranks`, given in any order.
 * All sends and receives must be with ranks of the list. All ranks of a set must prepare the plans of that
 * set in the same order. If one rank fails, the others get its error as with pw_plan_builder_prepare. */
PW_API pw_status pw_plan_builder_prepare_among(pw_plan_builder* builder, const int* ranks, size_t count,
                                               pw_plan** plan);
PW_API pw_status pw_plan_builder_free(pw_plan_builder* builder);

/* From the host. A start while an earlier one is not finished returns PW_INVALID_ARGUMENT, as does a finish
 * when no start by the host or a stream is open. If `request` is not NULL, `*request` stands for the finish:
 * testing it or waiting for it finishes the plan unless pw_plan_finish already did. */
PW_API pw_status pw_plan_start(pw_plan* plan, pw_request** request);
PW_API pw_status pw_plan_finish(pw_plan* plan, uint64_t timeout_ns);

/* In the order of a stream of the plan's device; the host returns at once. pw_plan_run_on is a start and its
 * finish as one piece of work. A stream that is being captured into a CUDA graph captures the call: N replays
 * are N starts. A wait in a stream ends when a rank that the plan depends on is lost or when the plan's
 * timeout passes: the plan is then cancelled and the stream goes on. */
PW_API pw_status pw_plan_start_on(pw_plan* plan, pw_stream stream);
PW_API pw_status pw_plan_finish_on(pw_plan* plan, pw_stream stream);
PW_API pw_status pw_plan_run_on(pw_plan* plan, pw_stream stream);
/* As pw_plan_run_on, but if `*word` is not `value` when the stream comes to the call, nothing is done: it is
 * no start. So a graph may contain more iterations of a loop than there will be. `word` is in memory that the
 * plan's device reads by this address; nothing may write it, and the plan may not receive into it, until the
 * run is done. All ranks of the plan must decide alike. */
PW_API pw_status pw_plan_run_on_if(pw_plan* plan, pw_stream stream, const int* word, int value);

/* Limits each wait of the plan, on the host, in streams and in kernels: after it the plan is cancelled. Until
 * the first call the setting `plan_timeout` applies. */
PW_API pw_status pw_plan_set_timeout(pw_plan* plan, uint64_t timeout_ns);

/* Tells a plan of a GPU whether kernels run beside it (1) or not (0, as until the first call). If they do,
 * launches of a plan that sends 2 MiB or more take three eighths of the multiprocessors and not all, so that
 * the kernels have room. Alone such a plan then takes up to 1.4 times as long. Launches that are captured in
 * a graph stay as they are, and the later rounds of a collective take all. Not while another thread launches
 * the plan. */
PW_API pw_status pw_plan_leave_room(pw_plan* plan, int leave_room);

/* Returns PW_OK, or why the plan was cancelled: PW_PEER_LOST, PW_TIMEOUT, PW_CLOSED or PW_DEVICE. A cancelled
 * plan never moves anything again. */
PW_API pw_status pw_plan_status(pw_plan* plan);

/* Tells what the plan moves and by which method: of a collective first a line with its name and method; a
 * line for each put and get, then for each send, then for each receive, such as "send 393216 bytes to rank 1,
 * tag 7: plan/lines, in 64 pieces". There is no line break after the last one. The text is valid until the
 * plan is freed. */
PW_API pw_status pw_plan_describe(pw_plan* plan, const char** text);

/* Fills the struct that is passed to a kernel by value, so that the kernel can start and finish the plan
 * (peerway/handles.h). */
struct pw_plan_handle;
PW_API pw_status pw_plan_get_handle(pw_plan* plan, struct pw_plan_handle* handle);

typedef enum pw_direction { PW_RECEIVE = 0, PW_SEND = 1 } pw_direction;

/* Gives a kernel this rank's end of one send (PW_SEND) or receive (PW_RECEIVE) of a prepared plan, so that
 * the kernel moves the packets itself and can send data as it computes it. PW_UNSUPPORTED if this send or
 * receive goes by neither packets nor lines. Such a plan is used only through its lanes or only by start and
 * finish, never both. */
struct pw_lane_handle;
PW_API pw_status pw_plan_get_lane(pw_plan* plan, pw_direction direction, int rank, int tag,
                                  struct pw_lane_handle* handle);

/* Gives a kernel the lanes of an all-reduce of GPU memory, so that the kernel combines elements itself as it
 * computes them (peerway/device/all_reduce.cuh). PW_UNSUPPORTED if the plan is something else, has more than
 * PW_KERNEL_MEMBERS members, or if its messages are not one-shot by packets or lines. Such a plan is used
 * only through this handle or only by start and finish, never both. */
struct pw_all_reduce_handle;
PW_API pw_status pw_plan_get_all_reduce_handle(pw_plan* plan, struct pw_all_reduce_handle* handle);

/* The plan must not be between a start and its finish, and no graph or kernel that holds it may run any
 * more. */
PW_API pw_status pw_plan_free(pw_plan* plan);

/* ---- kernels: one-sided operations without a plan (peerway/device.cuh) ---- */

/* These fill handles that are passed to kernels of `device`, a GPU, by value: to put into a remote region, to
 * notify a remote signal, and to wait for a signal of this rank. PW_UNSUPPORTED if the GPU cannot reach the
 * memory. A handle is valid until its remote or signal is freed, which must be after the last kernel that has
 * the handle. */
struct pw_remote_handle;
struct pw_notify_handle;
struct pw_signal_handle;
PW_API pw_status pw_remote_get_handle(pw_remote* remote, pw_device device, struct pw_remote_handle* handle);

/* While the handle is out, only kernels of that GPU may notify the signal: other notifications by this rank
 * are refused, as for a signal that a plan notifies. Only one scope of one kernel may notify it at a time.
 * pw_remote_release_notify_handle ends this; call it when no kernel that has the handle runs any more. */
PW_API pw_status pw_remote_get_notify_handle(pw_remote* signal, pw_device device,
                                             struct pw_notify_handle* handle);
PW_API pw_status pw_remote_release_notify_handle(pw_remote* signal);

/* A kernel's wait ends after `timeout_ns`, when the signal's sender is lost (with PW_ANY_RANK, any rank), or
 * when the context is closed. pw_signal_status then returns why, until the next handle of the signal is made.
 * Only kernels of one GPU may have handles of a signal. */
PW_API pw_status pw_signal_get_handle(pw_signal* signal, pw_device device, uint64_t timeout_ns,
                                      struct pw_signal_handle* handle);
PW_API pw_status pw_signal_status(const pw_signal* signal);

/* ---- fifo: puts that kernels post and the proxy carries out ---- */

/* Kernels of `device` post puts into the FIFO, and the context's proxy on the CPU carries them out over any
 * path: the target may also be a rank whose memory the device cannot map. A put names its target region and
 * the signal to notify by their index in `remotes`, and its source by its index in `regions`. At most
 * `entries` puts, a power of two from 2 to 65536, can be under way at once; then posting waits. An entry that
 * goes past the end of a region, or the loss of a target rank, cancels the FIFO. */
typedef struct pw_fifo pw_fifo;
struct pw_fifo_handle;
PW_API pw_status pw_fifo_create(pw_context* context, pw_remote* const* remotes, uint32_t remote_count,
                                pw_region* const* regions, uint32_t region_count, pw_device device,
                                uint32_t entries, pw_fifo** fifo);
PW_API pw_status pw_fifo_get_handle(pw_fifo* fifo, struct pw_fifo_handle* handle);

/* Returns PW_OK, or why the FIFO was cancelled. */
PW_API pw_status pw_fifo_status(pw_fifo* fifo);

/* No kernel may use the FIFO any more. Puts that are not complete may be dropped. */
PW_API pw_status pw_fifo_free(pw_fifo* fifo);

/* ---- halo: the boundary layers of distributed arrays ---- */

#define PW_MAX_ARRAY_DIMS 7

/* Arranges ranks 0 to (product of the extents - 1) of the team in a grid; the last dimension varies
 * fastest. */
typedef struct pw_grid {
  PW_SIZE_OF(struct pw_grid);
  uint32_t dims; /* 1 to PW_MAX_DIMS */
  uint32_t extent[PW_MAX_DIMS];
} pw_grid;

/* Sets `*first` and `*count` to part `index` of `extent` elements that are block-distributed over `parts`.
 * Every part has ceil(extent / parts) elements except the last ones, which are shorter or empty. */
PW_API pw_status pw_grid_block(uint64_t extent, uint32_t parts, uint32_t index, uint64_t* first,
                               uint64_t* count);

/* One dimension of a distributed array, in elements. It can grow only together with pw_array's `size`. */
typedef struct pw_array_dim {
  uint64_t extent;    /* of the whole array, over all ranks */
  int32_t grid_dim;   /* the dimension of the grid that it is distributed over; -1: every rank has it all */
  uint32_t periodic;  /* 1: the first element follows the last */
  uint64_t shadow[2]; /* layers below and above that this rank's memory holds */
  uint64_t width[2];  /* layers to refresh, at most the shadow; the outer ones stay untouched */
  int64_t stride;     /* bytes between elements; 0 in all dimensions: dense, the last varies fastest */
} pw_array_dim;

typedef struct pw_array {
  PW_SIZE_OF(struct pw_array);
  pw_region* region;
  uint64_t offset;        /* in the region, of this rank's part including its shadow */
  uint64_t element_bytes; /* size of an element of any trivially copyable type */
  uint32_t dims;          /* 1 to PW_MAX_ARRAY_DIMS */
  pw_array_dim dim[PW_MAX_ARRAY_DIMS];
} pw_array;

typedef enum pw_halo_parts { PW_HALO_FACES = 0, PW_HALO_CORNERS = 1 } pw_halo_parts;

/* Makes a prepared plan that refreshes the halos of all `count` arrays at once: each face goes straight from
 * its owner into the neighbour's halo. Collective. With PW_HALO_FACES only faces are refreshed, with
 * PW_HALO_CORNERS edges and corners, too. All arrays must lie in memory of one device. Start and finish it
 * like any plan; between the two the program may compute all elements that no halo touches. */
PW_API pw_status pw_halo_create(pw_context* context, const pw_array* arrays, uint32_t count,
                                const pw_grid* grid, pw_halo_parts parts, pw_plan** plan);

/* ---- collective: what all ranks of a group do together ---- */

typedef enum pw_collective_kind {
  PW_ALL_REDUCE = 0,     /* every rank gets the elements of all ranks combined: `count` of them */
  PW_REDUCE_SCATTER = 1, /* the same, but each rank gets only its part */
  PW_ALL_GATHER = 2,     /* every rank gets the parts of all ranks, in the order of the group */
  PW_BROADCAST = 3,      /* every rank gets the `count` elements of the root; all ranks use `to` alone */
  PW_ALL_TO_ALL = 4,     /* each rank gets a part from each rank */
  PW_BARRIER = 5         /* no data: a finish returns when all ranks have started */
} pw_collective_kind;

typedef enum pw_element {
  PW_INT8 = 0,
  PW_UINT8 = 1,
  PW_INT16 = 2,
  PW_UINT16 = 3,
  PW_INT32 = 4,
  PW_UINT32 = 5,
  PW_INT64 = 6,
  PW_UINT64 = 7,
  PW_FLOAT16 = 8,
  PW_BFLOAT16 = 9,
  PW_FLOAT32 = 10,
  PW_FLOAT64 = 11,
  PW_FLOAT8_E4M3 = 12, /* the types of 8 bits of the Open Compute Project: up to 448, without infinities */
  PW_FLOAT8_E5M2 = 13
} pw_element;

/* PW_AND and PW_OR combine bits, and only of integers. */
typedef enum pw_reduction {
  PW_SUM = 0,
  PW_MIN = 1,
  PW_MAX = 2,
  PW_PROD = 3,
  PW_AND = 4,
  PW_OR = 5
} pw_reduction;

/* In which order the operands of ranks are combined. PW_ORDER_OF_GROUP: one after another, in the order of
   the group, so that all ranks, starts, methods and devices give the same bits. PW_ORDER_ANY: as the method
   that is expected to be fastest does it; all ranks and all starts of a plan still give the same bits.
   Integers have the same bits in any order, so it makes no difference to them. */
typedef enum pw_order { PW_ORDER_OF_GROUP = 0, PW_ORDER_ANY = 1 } pw_order;

typedef struct pw_collective {
  PW_SIZE_OF(struct pw_collective);
  pw_collective_kind kind;
  pw_element element;
  pw_reduction reduction; /* of PW_ALL_REDUCE and PW_REDUCE_SCATTER */
  int root;               /* of PW_BROADCAST: a rank of the team */
  pw_region* to;          /* where this rank gets elements; NULL if it gets none */
  uint64_t to_offset;     /* in bytes */
  const pw_region* from;  /* where this rank's own elements are; NULL if it has none */
  uint64_t from_offset;
  uint64_t count;         /* elements; where ranks have parts: of each part, if `counts` is NULL */
  const uint64_t* counts; /* elements of the part of each rank, in the order of the group; of PW_ALL_TO_ALL:
                             that this rank sends to each rank */
  const uint64_t*
      receive_counts; /* of PW_ALL_TO_ALL: elements that this rank gets from each rank; NULL: `counts` */
  size_t part_count;  /* entries of `counts` and of `receive_counts`: as many as the group has ranks */
  const int* ranks;   /* the group: ranks of the team, in the same order at all; NULL: all ranks */
  size_t rank_count;
  pw_device device; /* where the plan runs if this rank has no memory in it; otherwise ignored */
  pw_order order;   /* of PW_ALL_REDUCE and PW_REDUCE_SCATTER */
} pw_collective;

/* Makes a prepared plan that carries out the collective at each start and its finish. All ranks of the group
 * call it, with equal numbers; ranks that call it with others all get an error with both descriptions.
 *
 * Elements are combined in the order of the group, each 16-bit floating-point number in 32 bits and rounded
 * once. So all ranks get the same bits, at every start and by every method.
 *
 * `to` and `from` may be the same memory (PW_ALL_REDUCE), and the smaller one may be this rank's part of the
 * larger one (PW_REDUCE_SCATTER, PW_ALL_GATHER). Otherwise they must not overlap. Both must lie in memory of
 * one device. */
PW_API pw_status pw_collective_create(pw_context* context, const pw_collective* collective, pw_plan** plan);

#ifdef __cplusplus
}
#endif
#endif
