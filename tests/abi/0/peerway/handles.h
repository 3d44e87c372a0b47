/* What kernels are given, by value: plain structs with addresses as the GPU sees them, made by the functions
 * of peerway.h and used by peerway/device.cuh. Read by C, C++, nvcc and NVRTC, so it includes nothing. The
 * members are Peerway's own. Every handle begins with the version of this file that the library was built
 * with; device code of another version refuses it with Result::other_version. */
#ifndef PEERWAY_HANDLES_H
#define PEERWAY_HANDLES_H

#define PW_HANDLE_VERSION 1u

/* How a wait in a kernel ends when what it waits for does not come. */
typedef struct pw_guard {
  const unsigned long long* stop; /* in host memory: not 0 once the host has cancelled the waits */
  unsigned long long* report;     /* in host memory: what ended a wait early is stored here */
  unsigned long long* polled;     /* in device memory: when `stop` was last polled, and what it said */
  unsigned long long timeout_ns;  /* of each wait */
} pw_guard;

/* A remote region that this GPU has mapped. */
typedef struct pw_remote_handle {
  unsigned version; /* PW_HANDLE_VERSION; likewise in all that follow */
  unsigned char* address;
  unsigned long long bytes;
} pw_remote_handle;

/* A remote signal that kernels of this GPU raise: they alone, while the handle is in use. */
typedef struct pw_raise_handle {
  unsigned version;
  unsigned long long* word;  /* at the owner; this rank stores its total there */
  unsigned long long* total; /* in device memory: what this rank has raised in all */
} pw_raise_handle;

/* A signal of this rank that kernels of this GPU wait for. */
typedef struct pw_signal_handle {
  unsigned version;
  unsigned words; /* one a sender; the value is their sum */
  const unsigned long long* word;
  int sender; /* -1: any rank */
  pw_guard guard;
} pw_signal_handle;

/* One end of a way for packets between two ranks, part of a plan: the sender's with the receiver's slots, or
 * the receiver's with its own. */
typedef struct pw_lane_handle {
  unsigned version;
  unsigned unit;                 /* bytes of data of a packet: 8 or 4 */
  unsigned char* slots;          /* two, used in turn */
  unsigned long long slot_bytes; /* of one: twice the data that fits */
  int rank;                      /* at the other end */
  pw_guard guard;
} pw_lane_handle;

/* A prepared plan: peerway::device::start() and finish() take it. */
typedef struct pw_plan_handle {
  unsigned version;
  unsigned start_pieces; /* pieces of work, which blocks share */
  unsigned finish_pieces;
  const void* steps;         /* in device memory: those of the start, then those of the finish */
  unsigned long long* epoch; /* in device memory, one for each piece of work */
  pw_guard guard;
} pw_plan_handle;

/* What a kernel asks of the proxy: to put `bytes` bytes at `from_offset` of region number `from` to
 * `to_offset` of remote number `to`, and then to raise remote number `signal` by `by`. The numbers are places
 * in the lists that pw_fifo_create was given. */
#define PW_FIFO_NONE 0xffffffffu /* for `signal`: raise none */
typedef struct pw_fifo_put {
  unsigned to;
  unsigned from;
  unsigned signal;
  unsigned long long to_offset;
  unsigned long long from_offset;
  unsigned long long bytes; /* 0: only raise */
  unsigned long long by;
} pw_fifo_put;

/* The same as it lies in the FIFO: 64 bytes of host memory. */
typedef struct pw_fifo_entry {
  unsigned long long number; /* counted from 1; stored last, when all else is there */
  unsigned long long to_offset;
  unsigned long long from_offset;
  unsigned long long bytes;
  unsigned long long by;
  unsigned long long to_from; /* `to` below, `from` in the upper half */
  unsigned long long signal;
  unsigned long long unused;
} pw_fifo_entry;

/* A FIFO from kernels of one device to the proxy (peerway/device/fifo.cuh). */
typedef struct pw_fifo_handle {
  unsigned version;
  pw_fifo_entry* entries;          /* a ring in host memory */
  unsigned long long count;        /* of its entries: a power of two */
  const unsigned long long* taken; /* in host memory: the last number that was read */
  const unsigned long long* done;  /* in host memory: the last number that is complete at both ends */
  unsigned long long* posted;      /* in device memory: the last number given out */
  unsigned long long* room;        /* in device memory: `taken` when a kernel looked last */
  pw_guard guard;
} pw_fifo_handle;

#endif
