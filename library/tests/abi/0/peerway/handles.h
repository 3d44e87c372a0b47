/* The structs that kernels take by value: addresses as the GPU sees them. Functions of peerway.h fill them
 * and peerway/device.cuh uses them. C, C++, nvcc and NVRTC read this file, so it includes nothing. The
 * members are internal to Peerway. Every handle begins with the version of this file that the library was
 * built with; device code of another version refuses it with Result::other_version. */
#ifndef PEERWAY_HANDLES_H
#define PEERWAY_HANDLES_H

#define PW_HANDLE_VERSION 1u

/* Ends a wait in a kernel whose value does not come: the host cancels it, or its timeout passes. */
typedef struct pw_guard {
  const unsigned long long* stop; /* in host memory: non-zero once the host has cancelled the waits */
  unsigned long long* report;     /* in host memory: a wait that ends early stores the reason here */
  unsigned long long* polled;     /* in device memory: when `stop` was last polled, and its value then */
  unsigned long long timeout_ns;  /* limit of each wait */
} pw_guard;

/* A remote region that this GPU has mapped. */
typedef struct pw_remote_handle {
  unsigned version; /* PW_HANDLE_VERSION; likewise in the structs below */
  unsigned char* address;
  unsigned long long bytes;
} pw_remote_handle;

/* A remote signal that only kernels of this GPU notify while the handle is in use. */
typedef struct pw_notify_handle {
  unsigned version;
  unsigned long long* word;  /* in the owner's memory; this rank stores its total there */
  unsigned long long* total; /* in device memory: the sum of all notifications by this rank */
} pw_notify_handle;

/* A signal of this rank that kernels of this GPU wait for. */
typedef struct pw_signal_handle {
  unsigned version;
  unsigned words; /* number of words, one for each sender; the value is their sum */
  const unsigned long long* word;
  int sender; /* -1: any rank */
  pw_guard guard;
} pw_signal_handle;

/* One end of a plan's send or receive, for packets. The sender's handle has the receiver's slots, the
 * receiver's handle its own. */
typedef struct pw_lane_handle {
  unsigned version;
  unsigned unit;                 /* bytes of data in a packet: 8 or 4 */
  unsigned char* slots;          /* two, used in turn */
  unsigned long long slot_bytes; /* of one slot: twice the data that fits */
  int rank;                      /* the other end's */
  pw_guard guard;
} pw_lane_handle;

/* The lanes of an all-reduce, for kernels that combine elements themselves (peerway/device/all_reduce.cuh).
 * Arrays have an entry for each member of the group, in its order; that of this rank is unused. */
#define PW_KERNEL_MEMBERS 16u
typedef struct pw_all_reduce_handle {
  unsigned version;
  unsigned unit;                 /* bytes of data in a packet: 8 or 4 */
  unsigned members;              /* at most PW_KERNEL_MEMBERS */
  unsigned own;                  /* this rank's number in the group */
  unsigned long long slot_bytes; /* of one slot: twice the data that fits; two slots are used in turn */
  unsigned char* to[PW_KERNEL_MEMBERS];         /* the slots at each member that this rank fills */
  const unsigned char* from[PW_KERNEL_MEMBERS]; /* this rank's slots that each member fills */
  int rank[PW_KERNEL_MEMBERS];
  pw_guard guard;
} pw_all_reduce_handle;

/* A prepared plan: peerway::device::start() and finish() take it. */
typedef struct pw_plan_handle {
  unsigned version;
  unsigned start_pieces; /* pieces of work, shared among blocks */
  unsigned finish_pieces;
  unsigned times; /* offset of the plan's trace records, in words from `epoch`; 0: the plan is not traced */
  const void* steps;         /* in device memory: the start's, then the finish's */
  unsigned long long* epoch; /* in device memory: a count for each piece of work */
  pw_guard guard;
} pw_plan_handle;

/* A request to the proxy: put `bytes` bytes from `from_offset` of region number `from` to `to_offset` of
 * remote number `to`, then add `by` to remote number `signal`. Numbers are indices into the lists passed
 * to pw_fifo_create. */
#define PW_FIFO_NONE 0xffffffffu /* for `signal`: notify none */
typedef struct pw_fifo_put {
  unsigned to;
  unsigned from;
  unsigned signal;
  unsigned long long to_offset;
  unsigned long long from_offset;
  unsigned long long bytes; /* 0: only notify */
  unsigned long long by;
} pw_fifo_put;

/* The same request as an entry of the FIFO: 64 bytes of host memory. */
typedef struct pw_fifo_entry {
  unsigned long long number; /* counted from 1; stored after all other members */
  unsigned long long to_offset;
  unsigned long long from_offset;
  unsigned long long bytes;
  unsigned long long by;
  unsigned long long to_from; /* `to` in the lower half, `from` in the upper */
  unsigned long long signal;
  unsigned long long unused;
} pw_fifo_entry;

/* A FIFO from kernels of one device to the proxy (peerway/device/fifo.cuh). */
typedef struct pw_fifo_handle {
  unsigned version;
  pw_fifo_entry* entries;          /* a ring buffer in host memory */
  unsigned long long count;        /* number of entries: a power of two */
  const unsigned long long* taken; /* in host memory: the last number that the proxy has read */
  const unsigned long long* done;  /* in host memory: the last number that is complete at both ends */
  unsigned long long* posted;      /* in device memory: the last number given out */
  unsigned long long* room;        /* in device memory: `taken` when a kernel last read it */
  pw_guard guard;
} pw_fifo_handle;

#endif
