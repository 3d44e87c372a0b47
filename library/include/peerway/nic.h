/* The plugin ABI of NICs: the functions through which Peerway, and through UCX unmodified MPI programs, use a
 * NIC. The NIC needs only put and get. What it lacks (signals, remote completion, messages, strides) Peerway
 * builds on top, relying only on the ordering guarantees that the plugin states. docs/nic/guide.md is the
 * guide; `peerway nic-check PLUGIN` tests a plugin and reports what is wrong.
 *
 * A plugin is a shared library with one function,
 *
 *     const pw_nic_ops* pw_nic_plugin(void);
 *
 * Every plugin must meet these rules:
 *
 *   - Posted operations progress without the host: a put arrives, and a get is answered, while neither end
 *     calls the library.
 *   - Gets by one endpoint from one peer complete in the order in which they were posted.
 *   - Words are whole: if a put or get begins at a multiple of 8 in both memories and `bytes` is a multiple
 *     of 8, each word of 8 bytes is read in one access and stored in one access, even while the owner of the
 *     memory reads or stores it. If one of the three is not a multiple of 8, there is no such guarantee.
 *   - Every accepted operation (PW_NIC_OK) ends: its `done` is called exactly once, from progress() or
 *     close() and nowhere else. If the peer is gone, the status is PW_NIC_UNREACHABLE, for puts as for gets.
 *     If the peer is disconnected, the key released or the local memory deregistered while the operation is
 *     under way, `done` is called from a later progress() with any status, which the caller ignores. If the
 *     owner deregistered the memory, the status of a get is PW_NIC_REFUSED; that of a put is too if the NIC
 *     learns of it, and otherwise PW_NIC_OK, although nothing was stored.
 *   - The NIC never writes outside the requested bytes, not even the value that was there before. It touches
 *     nothing once deregister_memory() has returned, at either end: deregister_memory() waits for accesses
 *     that are under way.
 *   - put(), get() and progress() return at once; PW_NIC_BUSY reports that there is no room. Other calls may
 *     take some seconds. The library never exits the process or writes to standard output.
 *   - Threads of the library block all signals (call pthread_sigmask() before and after creating them), so
 *     that the program's handlers run on the program's own threads.
 *
 * Threads: calls on one endpoint, and on its peers, memory and remotes, are made one at a time; calls on
 * different endpoints may be made at the same time. All sizes and offsets are in bytes. Structs grow only at
 * their end. The caller sets `size` to its own sizeof and the rest to zero; do not read or write a field
 * beyond `size`. The fields of the version that you build against are always there. */
#ifndef PEERWAY_NIC_H
#define PEERWAY_NIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PW_NIC_ABI 1u
#define PW_NIC_ADDRESS_BYTES 64
#define PW_NIC_KEY_BYTES 64
#define PW_NIC_SECRET_BYTES 16
#define PW_NIC_DIMENSIONS 4

typedef enum pw_nic_status {
  PW_NIC_OK = 0,
  /* Returned by puts, gets and fetch_add() when there is no room for another operation: the caller calls
   * progress() and tries again. It may be returned with nothing under way, for example from a queue that
   * several endpoints share, but not for ever while progress() is called: an operation's room is free once
   * its `done` was called, even if the operation failed. */
  PW_NIC_BUSY = 1,
  PW_NIC_UNREACHABLE = 2, /* the peer, or every route to it, is gone */
  PW_NIC_REFUSED = 3, /* memory cannot be registered, or a key or address is not this plugin's or is stale */
  PW_NIC_INVALID = 4, /* an argument exceeds what query() stated, or the bounds of the memory */
  PW_NIC_BROKEN = 5   /* this NIC failed */
} pw_nic_status;

/* Defined by the plugin; the caller only passes pointers to them. */
typedef struct pw_nic pw_nic;               /* an open endpoint of the NIC */
typedef struct pw_nic_peer pw_nic_peer;     /* a connection from it to another endpoint */
typedef struct pw_nic_memory pw_nic_memory; /* registered memory of this process */
typedef struct pw_nic_remote pw_nic_remote; /* memory that a peer registered */

typedef struct pw_nic_options {
  size_t size;               /* sizeof this struct in the caller; likewise in the structs below */
  uint64_t job;              /* the same at all endpoints of a job, different in other jobs; not secret */
  const char* configuration; /* the plugin's own text: what follows '?' in PEERWAY_NIC; may be empty */
  /* PW_NIC_SECRET_BYTES bytes that only the endpoints of the job know; copy them. NULL: there is no secret. A
   * NIC whose packets others can forge, or whose memory others can reach, must then refuse to open, since
   * anybody may know `job`. */
  const uint8_t* secret;
} pw_nic_options;

/* Where an endpoint is: other endpoints pass it to connect(). */
typedef struct pw_nic_address {
  uint32_t length;
  uint8_t bytes[PW_NIC_ADDRESS_BYTES];
} pw_nic_address;

/* Names registered memory; a peer passes it to import_key(). */
typedef struct pw_nic_key {
  uint32_t length;
  uint8_t bytes[PW_NIC_KEY_BYTES];
} pw_nic_key;

/* Ordering guarantees. Without them a put may overtake earlier puts, and a get may overtake earlier puts. */
#define PW_NIC_PUTS_IN_ORDER 1u    /* from one endpoint to one peer, a put is in place before any later put */
#define PW_NIC_GETS_BEHIND_PUTS 2u /* from one endpoint to one peer, a get reads what earlier puts stored */

/* Numbered like pw_device_kind. */
typedef enum pw_nic_memory_kind { PW_NIC_HOST = 0, PW_NIC_CUDA = 1, PW_NIC_HIP = 2 } pw_nic_memory_kind;

typedef struct pw_nic_info {
  size_t size;
  uint32_t guarantees;   /* PW_NIC_PUTS_IN_ORDER and PW_NIC_GETS_BEHIND_PUTS, or 0 */
  uint32_t memory_kinds; /* bits 1 << kind that register_memory() accepts; host is required */
  uint64_t largest;      /* bytes of one put or get; at least 4096 */
  uint64_t copied;       /* bytes of a put from memory that is not registered; at least 8 */
  uint32_t in_flight;    /* limit of operations under way at this endpoint, to all peers; 0: unknown */
  uint32_t number;       /* of this endpoint, unique among the job's open endpoints in all processes */
  uint32_t endpoints;    /* limit of endpoints of a job: every number is below it */
  uint32_t dimensions;   /* of the network's topology, 0 to 4; 0: none */
  uint32_t extent[PW_NIC_DIMENSIONS];
  uint32_t coordinate[PW_NIC_DIMENSIONS]; /* of this endpoint's node */
  double latency_ns;                      /* hint, above 0: one-way time of a small put to the nearest node */
  double bytes_per_s;                     /* hint, above 0: bandwidth of large puts to one peer */
} pw_nic_info;

/* A range of memory to be registered. `descriptor` is that of the file behind it (a memfd of shared memory, a
 * dma-buf of a GPU), and `descriptor_offset` the range's first byte in that file: any byte, while mmap()
 * needs a page boundary. The caller closes the descriptor; dup() it to keep it. -1: no descriptor is known.
 * That is so for most host memory, which must be accepted all the same; GPU memory without a descriptor may
 * be refused. */
typedef struct pw_nic_span {
  size_t size;
  void* address;
  uint64_t bytes;
  pw_nic_memory_kind kind;
  int32_t device; /* ordinal of the GPU in this process; 0 for host memory */
  int32_t descriptor;
  uint64_t descriptor_offset;
} pw_nic_span;

/* A completion callback, embedded in the caller's own struct. It must stay where it is until it was called.
 * One may be passed to several operations and is called once for each. It must not call functions of the
 * endpoint. If an operation's `done` is NULL, nothing is called. It is not called for an operation that was
 * not accepted. */
typedef struct pw_nic_done {
  void (*call)(struct pw_nic_done* done, pw_nic_status status);
} pw_nic_done;

typedef struct pw_nic_ops {
  uint32_t abi;     /* PW_NIC_ABI */
  uint32_t size;    /* sizeof(pw_nic_ops) when the plugin was built */
  const char* name; /* "torus" makes the path nic:torus. Lower-case letters, digits, '-' */

  /* Opens an endpoint. Several may be open in a process. After a failure why(NULL) returns the reason.
   * PW_NIC_INVALID: the configuration has something that the plugin does not know or cannot use. */
  pw_nic_status (*open)(const pw_nic_options* options, pw_nic** nic);
  /* Ends operations under way, calling their `done` with PW_NIC_BROKEN or their own result, and frees the
   * endpoint with its threads and descriptors. The caller has freed everything made from it before. */
  void (*close)(pw_nic* nic);
  void (*query)(pw_nic* nic, pw_nic_info* info);
  void (*address)(pw_nic* nic, pw_nic_address* address);
  /* Returns one line for people: why the last call on this endpoint failed. NULL: why this thread's last
   * open() failed. */
  const char* (*why)(pw_nic* nic);

  /* An endpoint must be able to connect to its own address. */
  pw_nic_status (*connect)(pw_nic* nic, const pw_nic_address* address, pw_nic_peer** peer);
  void (*disconnect)(pw_nic* nic, pw_nic_peer* peer);

  /* Turns pointers into what the NIC understands, such as physical or IO addresses. PW_NIC_BUSY: there is no
   * room until other memory is deregistered. */
  pw_nic_status (*register_memory)(pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory,
                                   pw_nic_key* key);
  void (*deregister_memory)(pw_nic* nic, pw_nic_memory* memory);
  pw_nic_status (*import_key)(pw_nic* nic, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote);
  void (*release_key)(pw_nic* nic, pw_nic_remote* remote);

  /* Stores `bytes` bytes (at least 1) from `data` at `offset` of the remote memory. Either `data` lies in
   * `memory`; or `memory` is NULL, `bytes` is at most info.copied, and put() copies the bytes before it
   * returns. `done` reports that `data` may be changed again. It does not report that the bytes have
   * arrived. */
  pw_nic_status (*put)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                       pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done);
  /* Reads `bytes` bytes (at least 1) at `offset` of the remote memory into `data`, which lies in `memory`.
   * `done` reports that they are there. */
  pw_nic_status (*get)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data, pw_nic_memory* memory,
                       uint64_t bytes, pw_nic_done* done);
  /* Calls `done` for operations that have ended. Returns how many it called. */
  unsigned (*progress)(pw_nic* nic);

  /* ---- optional entries: NULL where the NIC has none ---- */

  /* Like put(), for `blocks` blocks of `block_bytes` bytes, whose starts are `from_stride` bytes apart here
   * and `to_stride` bytes apart there. All blocks together have at most info.largest bytes. */
  pw_nic_status (*put_strided)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t to_stride,
                               const void* data, uint64_t from_stride, pw_nic_memory* memory, uint64_t blocks,
                               uint64_t block_bytes, pw_nic_done* done);
  /* Like put(). Once the bytes are in place, stores `value` into the aligned word at `word_offset` of
   * `word_remote`, which belongs to the same peer. */
  pw_nic_status (*put_with_word)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                                 pw_nic_memory* memory, uint64_t bytes, pw_nic_remote* word_remote,
                                 uint64_t word_offset, uint64_t value, pw_nic_done* done);
  /* Adds `add` to the aligned word at `offset` of the remote memory, atomically, and stores its previous
   * value at `before`, which lies in `memory`. */
  pw_nic_status (*fetch_add)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t add,
                             uint64_t* before, pw_nic_memory* memory, pw_nic_done* done);
  /* Returns a descriptor that becomes readable when progress() has a `done` to call, once arm() was called;
   * -1: there is none now. */
  int (*event)(pw_nic* nic);
  void (*arm)(pw_nic* nic);
} pw_nic_ops;

typedef const pw_nic_ops* (*pw_nic_plugin_function)(void);
#define PW_NIC_PLUGIN_SYMBOL "pw_nic_plugin"

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const pw_nic_ops* pw_nic_plugin(void);

#ifdef __cplusplus
}
#endif
#endif
