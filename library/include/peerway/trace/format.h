/* The files that peerway/trace/recorder.h writes: a header, then a ring of 32-byte events. C11 and C++. All
 * numbers are those of the machine that wrote them. */
#ifndef PEERWAY_TRACE_FORMAT_H
#define PEERWAY_TRACE_FORMAT_H

#include <stdint.h>

enum { PW_TRACE_NAMES = 1024, PW_TRACE_NAME_BYTES = 160, PW_TRACE_OPEN = 64, PW_TRACE_CELLS = 4096 };
enum { PW_TRACE_COUNTERS = 1, PW_TRACE_PROFILE = 2, PW_TRACE_FULL = 3 };

/* The kind of an event. Operations of Peerway use the same number as the number of their name. The numbers
 * are in files: they never change. */
enum pw_trace_kind {
  PW_TRACE_PUT = 1, /* tag: the signal that it notifies, if by 1, else -1 */
  PW_TRACE_GET = 2,
  PW_TRACE_NOTIFY = 3, /* bytes: the amount added; tag: the signal */
  PW_TRACE_SIGNAL = 4, /* a wait; bytes: the value waited for; tag: the signal */
  PW_TRACE_FLUSH = 5,
  PW_TRACE_PLAN_START = 6,
  PW_TRACE_PLAN_FINISH = 7,
  PW_TRACE_OPERATIONS = 8, /* the kinds below this number are operations of Peerway */
  PW_TRACE_REGION = 8,
  PW_TRACE_CALL = 9, /* an MPI call that has no kind of its own below */
  PW_TRACE_SEND = 10,
  PW_TRACE_RECV = 11,
  PW_TRACE_ISEND = 12,
  PW_TRACE_IRECV = 13,
  PW_TRACE_SENT = 14, /* from the call that started the send until its request was found complete */
  PW_TRACE_RECEIVED =
      15,             /* the same for a receive; peer, tag and bytes are those of the message that arrived */
  PW_TRACE_WAIT = 16, /* a call that waits for requests or tests them */
  PW_TRACE_COLLECTIVE = 17,
  PW_TRACE_RMA_PUT = 18,
  PW_TRACE_RMA_GET = 19,
  PW_TRACE_RMA_SYNC = 20,
  PW_TRACE_REQUESTS = 21, /* a wait for requests of Peerway that were not complete */
  /* A plan as a stream or a kernel ran it, in the time of that stream or kernel. bytes: what a start
   * sends; tag: the number of the plan in the process; where: "host stream", "GPU stream" or "kernel". */
  PW_TRACE_STEPS_START = 22,
  PW_TRACE_STEPS_FINISH = 23,
  PW_TRACE_STEPS_BOTH = 24, /* one launch did a finish and the next start */
  PW_TRACE_PROXY = 25,      /* the proxy's part of one start of a plan, from its trigger to its completion */
  PW_TRACE_STAGED = 26,     /* one chunk through bounce buffers; where: "fill" or "drain" */
  PW_TRACE_NIC = 27,        /* one operation of a NIC, from its post to its completion; where: the NIC */
  PW_TRACE_KERNEL = 28,     /* of a GPU; tag: the number that CUPTI gave the launch */
  PW_TRACE_COPY = 29,       /* by a GPU; where: "host to device" and so on */
  PW_TRACE_FILL = 30,       /* of a GPU's memory */
  PW_TRACE_MARK = 31,       /* a moment that the program named */
  PW_TRACE_RANGE = 32,      /* a range of the program that need not nest with others */
  /* A nonblocking collective: from the call that started it, which is a PW_TRACE_COLLECTIVE, until its
   * request was found complete. */
  PW_TRACE_COLLECTIVE_DONE = 33,
  PW_TRACE_PIECE = 34, /* one path's part of a put or get that the route splits; lies within the event of that
                          put or get */
  PW_TRACE_COMM_MADE = 35, /* a moment; where: the communicator or the window of MPI */
  PW_TRACE_COMM_FREED = 36,
  PW_TRACE_WINDOW_MADE = 37,
  PW_TRACE_WINDOW_FREED = 38,
  PW_TRACE_CANCELLED = 39 /* a send that was cancelled, in place of its PW_TRACE_SENT */
};

/* The clock of a ring's times. */
enum {
  PW_TRACE_CLOCK_HOST = 0, /* the host's time-stamp counter, or CLOCK_MONOTONIC if that cannot be used */
  PW_TRACE_CLOCK_NS = 1,   /* CLOCK_MONOTONIC */
  PW_TRACE_CLOCK_GPU = 2   /* the timer of GPU number `clock_of` */
};

typedef struct pw_trace_event {
  uint64_t begin;                               /* in ticks of the ring's clock */
  uint64_t duration : 44, name : 10, site : 10; /* site: the name of the place that called, or 0 */
  uint64_t bytes : 44, where : 10, kind : 10;   /* where: the name of a path or a communicator, or 0 */
  int32_t peer;                                 /* rank in the world; -1: none or any */
  int32_t tag;
} pw_trace_event;

/* A sum over events that are alike. At level "profile" events are alike if `name` and the members after
 * it, up to `size_class`, are equal; at other levels if `name` is. At level "full" the sums cover the
 * events that are not in the ring, because they were overwritten or are never written there. */
typedef struct pw_trace_cell {
  uint32_t name;
  uint16_t where, site;
  int32_t peer;
  int32_t size_class; /* 0: no bytes; n: from 2^(n-1) to 2^n - 1 bytes */
  uint64_t count, bytes, ticks;
} pw_trace_cell;

typedef struct pw_trace_ring { /* the file: this, then `capacity` events */
  char magic[8];               /* "PWTRACE4" */
  uint32_t header_bytes, event_bytes, pid, tid;
  int32_t rank;
  uint32_t level;
  uint64_t capacity, written;  /* when `written` exceeds the capacity, the oldest events were overwritten */
  uint64_t unnamed, uncounted; /* names and events for which there was no room */
  uint32_t names, depth;
  uint32_t clock, clock_of;
  uint64_t ticks[2],
      ns[2]; /* the ring's clock and CLOCK_MONOTONIC, read when the ring was opened and again last */
  char host[64], source[16], thread[16];
  uint8_t at_start[PW_TRACE_NAMES / 8]; /* a bit for each name: set for a path whose puts and gets are
                                           complete when their call returns */
  char unused[48];                      /* aligns the events with cache lines */
  pw_trace_event
      open[PW_TRACE_OPEN]; /* events that have begun and not ended; deeper ones are only counted, in depth */
  pw_trace_cell cell[PW_TRACE_CELLS];
  char name[PW_TRACE_NAMES][PW_TRACE_NAME_BYTES];
} pw_trace_ring;

/* One word for each process, in a file beside its rings. All recorders of the process load it before they
 * record. The low byte says who has stopped recording. The rest counts who wants recording: 1 for a whole
 * process that records, or the number of open regions among those that were requested. */
enum { PW_TRACE_STOPPED = 1, PW_TRACE_WANTED = 256 };
typedef struct pw_trace_gate {
  char magic[8]; /* "PWGATE 1" */
  uint32_t word;
} pw_trace_gate;

#ifdef __cplusplus
static_assert(sizeof(pw_trace_event) == 32 && sizeof(pw_trace_ring) % 64 == 0, "as files have it");
#else
_Static_assert(sizeof(pw_trace_event) == 32, "as files have it");
#endif

#endif
