/* The plugin ABI of NICs: what a NIC's library gives, so that Peerway and, through UCX, unmodified MPI
 * programs run over it. The NIC needs no more than put and get; what it lacks (signals, remote completion,
 * messages, strides) is built on top, by the ordering guarantees that it states and nothing more. The guide
 * is docs/nic-guide.md; `peerway nic-check PLUGIN` tells an author what is wrong.
 *
 * A plugin is a shared library with one function,
 *
 *     const pw_nic_ops* pw_nic_plugin(void);
 *
 * What every plugin does:
 *   - Posted operations move without the host: a put arrives, and a get is answered, while neither end calls
 *     the library.
 *   - Gets of one endpoint from one peer complete in the order in which they were posted.
 *   - Words are whole: where the bytes of a put or get begin at a multiple of 8 in both memories, and `bytes`
 *     is one, each word of 8 bytes is read at once and stored at once, also while the owner of the memory
 *     stores or reads it. Where one of the three is no multiple of 8, nothing is said of words.
 *   - An operation that was accepted (PW_NIC_OK) ends: its `done` is called once, from progress() or close()
 *     and nowhere else. It is PW_NIC_UNREACHABLE when the peer is gone, of puts as of gets. What is under way
 *     when its peer is disconnected or its key released ends at a later progress(), by itself or at once, and
 *     with any status: nobody looks at that any more. So does what is under way when its memory here is
 *     deregistered. Where the owner deregistered the memory, a get is PW_NIC_REFUSED; a put is too, where the
 *     NIC is told of it, and else PW_NIC_OK, though it stored nothing.
 *   - Nothing is touched outside of the bytes that were named, not even with what was there before, nor after
 *     deregister_memory() has returned, at either end: it waits for what still touches the memory.
 *   - put(), get() and progress() return at once; PW_NIC_BUSY says that there is no room. Other calls may
 * take some seconds. The library neither exits the process nor writes to standard output.
 *   - Its threads block all signals (pthread_sigmask() around their making): handlers are for the program's.
 *
 * Threads: calls on one endpoint, its peers, its memory and its remotes are made one at a time; those on
 * several endpoints may be made at once. All sizes and offsets are in bytes. Structs grow at their end alone:
 * `size` is that of the caller's, who has set it and filled the rest with zeros; read and write no field
 * behind it. Those of this version may be taken for there. */
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
  /* Of puts, gets and fetch_add(): no room for another operation now. Call progress() and try again. It may
   * come with nothing under way, as of a queue that several share, but not for ever while progress() is
   * called: room that an operation had is free once its `done` was called, also of one that failed. */
  PW_NIC_BUSY = 1,
  PW_NIC_UNREACHABLE = 2, /* the peer, or every route to it, is gone */
  PW_NIC_REFUSED = 3,     /* memory that cannot be registered, a key or address that is not of this kind */
  PW_NIC_INVALID = 4,     /* an argument outside of what query() stated */
  PW_NIC_BROKEN = 5       /* this NIC failed */
} pw_nic_status;

/* The plugin's own. */
typedef struct pw_nic pw_nic;               /* an open endpoint of the NIC */
typedef struct pw_nic_peer pw_nic_peer;     /* a connection from it to another endpoint */
typedef struct pw_nic_memory pw_nic_memory; /* registered memory of this process */
typedef struct pw_nic_remote pw_nic_remote; /* memory that a peer registered */

typedef struct pw_nic_options {
  size_t size;               /* of this struct in the caller; likewise in all that follow */
  uint64_t job;              /* the same at all endpoints of a job, and no other job's; no secret */
  const char* configuration; /* the plugin's own text, what follows '?' in PEERWAY_NIC; may be empty */
  /* PW_NIC_SECRET_BYTES bytes that the endpoints of the job have in common and nobody else knows; copy them.
   * NULL: none were given, and what others can reach must not rest on `job`, which anybody may know. */
  const uint8_t* secret;
} pw_nic_options;

/* Where an endpoint is, for the connect() of others. */
typedef struct pw_nic_address {
  uint32_t length;
  uint8_t bytes[PW_NIC_ADDRESS_BYTES];
} pw_nic_address;

/* How a peer names registered memory. */
typedef struct pw_nic_key {
  uint32_t length;
  uint8_t bytes[PW_NIC_KEY_BYTES];
} pw_nic_key;

/* Ordering guarantees. Without any, a put may overtake puts, and a get puts. */
#define PW_NIC_PUTS_IN_ORDER 1u    /* of one endpoint to one peer: a put is in place before a later one */
#define PW_NIC_GETS_BEHIND_PUTS 2u /* of one endpoint to one peer: a get reads what earlier puts stored */

/* As pw_device_kind numbers them. */
typedef enum pw_nic_memory_kind { PW_NIC_HOST = 0, PW_NIC_CUDA = 1, PW_NIC_HIP = 2 } pw_nic_memory_kind;

typedef struct pw_nic_info {
  size_t size;
  uint32_t guarantees;   /* the ordering guarantees */
  uint32_t memory_kinds; /* 1 << kind: what register_memory() takes; host always */
  uint64_t largest;      /* of one put or get; at least 4096 */
  uint64_t copied;       /* of a put from memory that is not registered; at least 8 */
  uint32_t
      in_flight;   /* operations of this endpoint that can be under way, all peers together; 0: not known */
  uint32_t number; /* of this endpoint: no other of the job that is open has it, in no process */
  uint32_t endpoints;  /* that a job can have: every number is below it */
  uint32_t dimensions; /* of the topology, 0 to 4; 0: none */
  uint32_t extent[PW_NIC_DIMENSIONS];
  uint32_t coordinate[PW_NIC_DIMENSIONS]; /* of this endpoint's node */
  double latency_ns;                      /* hint: a small put to the nearest node, one way */
  double bytes_per_s;                     /* hint: large puts to one peer */
} pw_nic_info;

/* A span to be registered. `descriptor`: of the file that backs it (a memfd of shared memory, a dma-buf of a
 * GPU), and where the span begins in it, at any byte: mmap() wants that rounded down to a page. The caller
 * closes it, so dup() it to keep it. -1: none is known, as of most memory of the host, which must be taken
 * all the same; of a GPU's it may be refused. */
typedef struct pw_nic_span {
  size_t size;
  void* address;
  uint64_t bytes;
  pw_nic_memory_kind kind;
  int32_t device; /* ordinal of the GPU in this process; 0 for host memory */
  int32_t descriptor;
  uint64_t descriptor_offset;
} pw_nic_span;

/* Embedded in the caller's own struct; it must stay where it is until it was called. One may be given to
 * several operations and is called for each. It may not call into the endpoint. NULL in any operation: nobody
 * wants to be told. Not called for an operation that was not accepted. */
typedef struct pw_nic_done {
  void (*call)(struct pw_nic_done* done, pw_nic_status status);
} pw_nic_done;

typedef struct pw_nic_ops {
  uint32_t abi;     /* PW_NIC_ABI */
  uint32_t size;    /* sizeof(pw_nic_ops) where the plugin was built */
  const char* name; /* "torus": Peerway's path is nic:torus. Lower-case letters, digits, '-' */

  /* Opens an endpoint. Several may be open in a process. On failure why(NULL) says why. */
  pw_nic_status (*open)(const pw_nic_options* options, pw_nic** nic);
  /* Ends what is under way (its `done` is called from here, with PW_NIC_BROKEN, or as it ended) and frees the
   * endpoint, with its threads and descriptors. All that was made from it was freed before. */
  void (*close)(pw_nic* nic);
  void (*query)(pw_nic* nic, pw_nic_info* info);
  void (*address)(pw_nic* nic, pw_nic_address* address);
  /* One line for people: why the last call on this endpoint (NULL: the last open() of this thread) failed. */
  const char* (*why)(pw_nic* nic);

  /* An endpoint may connect to itself. */
  pw_nic_status (*connect)(pw_nic* nic, const pw_nic_address* address, pw_nic_peer** peer);
  void (*disconnect)(pw_nic* nic, pw_nic_peer* peer);

  /* The place where pointers become what the NIC understands (physical or IO addresses). PW_NIC_BUSY: there
   * is no room for more memory until other memory is deregistered. */
  pw_nic_status (*register_memory)(pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory,
                                   pw_nic_key* key);
  void (*deregister_memory)(pw_nic* nic, pw_nic_memory* memory);
  pw_nic_status (*import_key)(pw_nic* nic, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote);
  void (*release_key)(pw_nic* nic, pw_nic_remote* remote);

  /* Stores `bytes` bytes, at least one, from `data` at `offset` of the remote memory. `data` lies in
   * `memory`, or `memory` is NULL, `bytes` is at most info.copied, and the bytes are copied before put()
   * returns. `done` tells that `data` may be changed again; of arrival it says nothing. */
  pw_nic_status (*put)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                       pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done);
  /* Reads `bytes` bytes, at least one, at `offset` of the remote memory to `data` in `memory`. `done`: they
   * are there. */
  pw_nic_status (*get)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data, pw_nic_memory* memory,
                       uint64_t bytes, pw_nic_done* done);
  /* Calls what is done. Returns how many. */
  unsigned (*progress)(pw_nic* nic);

  /* ---- optional entries: NULL where the NIC has none ---- */

  /* As put(), of `blocks` blocks of `block_bytes` bytes, which lie `from_stride` apart here and `to_stride`
   * there. All blocks together have at most info.largest bytes. */
  pw_nic_status (*put_strided)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t to_stride,
                               const void* data, uint64_t from_stride, pw_nic_memory* memory, uint64_t blocks,
                               uint64_t block_bytes, pw_nic_done* done);
  /* As put(), and once the bytes are in place the aligned word at `word_offset` of `word_remote` (of the same
   * peer) is set to `value`. */
  pw_nic_status (*put_with_word)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                                 pw_nic_memory* memory, uint64_t bytes, pw_nic_remote* word_remote,
                                 uint64_t word_offset, uint64_t value, pw_nic_done* done);
  /* Adds to an aligned word of the remote memory; what it was before is stored at `before` in `memory`. */
  pw_nic_status (*fetch_add)(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t add,
                             uint64_t* before, pw_nic_memory* memory, pw_nic_done* done);
  /* A descriptor that becomes readable when progress() has something to call, after arm(); -1: none now. */
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
