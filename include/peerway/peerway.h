/* Peerway: one-sided communication between memories of any device, over the fastest path there is.
 *
 * Four ideas: a region (what: any memory, registered), a path (how: chosen from measured costs), a signal
 * (when: a 64-bit counter that only grows) and a team (who). A rank moves bytes between its own regions and
 * regions that it imported from other ranks by key; the other rank takes no part.
 *
 * Every function returns a pw_status; on failure pw_error_message() of the calling thread says what was
 * asked, what was found and what to do. Nothing here exits the process, prints to standard output or waits
 * without end. Functions are safe to call from several threads, but an object must not be freed while another
 * thread uses it. Sizes, offsets and strides are in bytes, times in nanoseconds. */
#ifndef PEERWAY_PEERWAY_H
#define PEERWAY_PEERWAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(PEERWAY_BUILD)
#define PW_API __attribute__((visibility("default")))
#else
#define PW_API
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
  PW_INTERNAL = 17    /* a defect of Peerway */
} pw_status;

PW_API const char* pw_status_name(pw_status status); /* "ok", "timeout", "peer_lost", ... */
PW_API const char* pw_error_message(void);           /* of this thread's last failure */
PW_API const char* pw_version(void);                 /* "0.1.0" */

#define PW_FOREVER UINT64_MAX /* a timeout that never passes; the death of a peer still ends the wait */

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
PW_API pw_status pw_team_all_gather(pw_team* team, const void* mine, size_t bytes, void* all,
                                    uint64_t timeout_ns);
PW_API pw_status pw_team_barrier(pw_team* team, uint64_t timeout_ns);

/* 1 when the rank is known to be dead or gone. */
PW_API int pw_team_lost(const pw_team* team, int rank);
PW_API void pw_team_free(pw_team* team);

/* ---- context: devices, routes and connections of one team ---- */

typedef struct pw_context pw_context;

/* Collective over the team, which must outlive the context. */
PW_API pw_status pw_context_create(pw_team* team, pw_context** context);

/* Ends the context without freeing it: the waits of this process's other threads in it, and of peers for this
 * rank's part of a transfer, return PW_CLOSED, and operations that follow are refused. Closing twice does
 * nothing. */
PW_API pw_status pw_context_close(pw_context* context);

/* Closes and frees it. All that was made from it must have been closed before, and no thread be in a call
 * with it. */
PW_API void pw_context_free(pw_context* context);

/* Restricts the operations that follow to the named paths, comma-separated ("peer/copy,staged"); a name
 * without a method means all its methods ("peer"). NULL or "route" gives the choice back to the route table.
 */
PW_API pw_status pw_context_use(pw_context* context, const char* paths);

/* ---- region: a registered span of any memory ---- */

typedef struct pw_region pw_region;

typedef enum pw_device_kind { PW_HOST = 0, PW_CUDA = 1 } pw_device_kind;
typedef struct pw_device {
  pw_device_kind kind;
  int32_t index; /* CUDA ordinal in this process; -1: the one bound to this rank (setting `device`) */
} pw_device;

/* New memory that peers on this host can map from the start. Freed by pw_region_close. */
PW_API pw_status pw_allocate(pw_context* context, pw_device device, uint64_t bytes, pw_region** region);

/* Registers memory the caller owns: malloc, mmap, cudaMalloc, a cudaMallocAsync pool, VMM. The memory must
 * stay allocated until pw_region_close. Registering a span again is cheap. */
PW_API pw_status pw_register(pw_context* context, void* address, uint64_t bytes, pw_region** region);

/* Ends the region: peers that still use its key get PW_STALE_KEY. */
PW_API pw_status pw_region_close(pw_region* region);
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
PW_API void pw_remote_close(pw_remote* remote);
PW_API int pw_remote_rank(const pw_remote* remote);
PW_API uint64_t pw_remote_bytes(const pw_remote* remote);

/* ---- signal: a 64-bit counter in this rank's memory that peers raise ---- */

typedef struct pw_signal pw_signal;

#define PW_ANY_RANK (-1)

/* `sender` is the one rank that will raise it, or PW_ANY_RANK. Waiting on a signal of one sender is told
 * apart from the death of any other rank. */
PW_API pw_status pw_signal_create(pw_context* context, int sender, pw_signal** signal);
PW_API pw_status pw_signal_close(pw_signal* signal);
PW_API pw_status pw_signal_key(const pw_signal* signal, void* key, size_t capacity, size_t* length);
PW_API uint64_t pw_signal_value(const pw_signal* signal);

/* Returns once the signal is at least `value`. PW_TIMEOUT, PW_PEER_LOST (its sender is lost; with
 * PW_ANY_RANK, any rank) or PW_CLOSED otherwise. */
PW_API pw_status pw_signal_wait(pw_signal* signal, uint64_t value, uint64_t timeout_ns);

/* ---- operations ---- */

/* A put or get is started by the call. The bytes of the source must not change, and those of the target not
 * be used, before pw_flush of that rank returns; or, at the target of a put, before the signal it raises has
 * arrived. */

/* Raise a remote signal by `by` (at least 1) after the data of the same operation is visible at the target. A
 * rank's raises of one signal arrive in the order in which they were started. */
typedef struct pw_raise {
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
  uint64_t offset; /* of the first byte in the region */
  uint64_t block_bytes;
  uint32_t dims; /* 0 to PW_MAX_DIMS */
  uint64_t count[PW_MAX_DIMS];
  int64_t stride[PW_MAX_DIMS];
} pw_block;

PW_API pw_status pw_put(pw_context* context, pw_remote* to, uint64_t to_offset, const pw_region* from,
                        uint64_t from_offset, uint64_t bytes, const pw_raise* raise);
PW_API pw_status pw_get(pw_context* context, const pw_remote* from, uint64_t from_offset, pw_region* to,
                        uint64_t to_offset, uint64_t bytes);

/* The same for block-strided data. Both sides have the same counts and block_bytes, or one of them is
 * contiguous and as large as the other. */
PW_API pw_status pw_put_block(pw_context* context, pw_remote* to, const pw_block* to_block,
                              const pw_region* from, const pw_block* from_block, const pw_raise* raise);
PW_API pw_status pw_get_block(pw_context* context, const pw_remote* from, const pw_block* from_block,
                              pw_region* to, const pw_block* to_block);

PW_API pw_status pw_raise_signal(pw_context* context, const pw_raise* raise);

/* Returns once all that this context started towards `rank` (PW_ANY_RANK: all ranks) is complete at both
 * ends. */
PW_API pw_status pw_flush(pw_context* context, int rank, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
