/* The files that peerway/trace/recorder.h writes: a header, then a ring of 32-byte events. C11 and C++. All
 * numbers are those of the machine that wrote them. */
#ifndef PEERWAY_TRACE_FORMAT_H
#define PEERWAY_TRACE_FORMAT_H

#include <stdint.h>

enum { PW_TRACE_NAMES = 1024, PW_TRACE_NAME_BYTES = 160, PW_TRACE_OPEN = 64, PW_TRACE_CELLS = 4096 };
enum { PW_TRACE_COUNTERS = 1, PW_TRACE_PROFILE = 2, PW_TRACE_FULL = 3 };

/* What an event is; the operations of Peerway have the same number as a name. The numbers are in files: they
 * never change. */
enum pw_trace_kind {
  PW_TRACE_PUT = 1, /* tag: the signal that it notifies by one, else -1 */
  PW_TRACE_GET = 2,
  PW_TRACE_NOTIFY = 3, /* bytes: by how much; tag: the signal */
  PW_TRACE_SIGNAL = 4, /* a wait; bytes: for which value; tag: the signal */
  PW_TRACE_FLUSH = 5,
  PW_TRACE_PLAN_START = 6,
  PW_TRACE_PLAN_FINISH = 7,
  PW_TRACE_OPERATIONS = 8, /* how many kinds above are operations of Peerway */
  PW_TRACE_REGION = 8,
  PW_TRACE_CALL = 9, /* an MPI call that is none of those below */
  PW_TRACE_SEND = 10,
  PW_TRACE_RECV = 11,
  PW_TRACE_ISEND = 12,
  PW_TRACE_IRECV = 13,
  PW_TRACE_SENT = 14,     /* begins as the call that started it and ends as its request was found complete */
  PW_TRACE_RECEIVED = 15, /* the same; with the peer, tag and bytes of what arrived */
  PW_TRACE_WAIT = 16,     /* a call that waits for requests, or asks for them */
  PW_TRACE_COLLECTIVE = 17,
  PW_TRACE_RMA_PUT = 18,
  PW_TRACE_RMA_GET = 19,
  PW_TRACE_RMA_SYNC = 20,
  PW_TRACE_REQUESTS = 21, /* a wait for requests of Peerway that were not complete */
  /* A plan as a stream or a kernel ran it, on that one's time; bytes: those that a start sends; tag: which
   * plan of the process; where: "host stream", "GPU stream" or "kernel". */
  PW_TRACE_STEPS_START = 22,
  PW_TRACE_STEPS_FINISH = 23,
  PW_TRACE_STEPS_BOTH = 24, /* one launch did a finish's and the next start's */
  PW_TRACE_PROXY = 25,  /* what the proxy does of one start of a plan, from its trigger to its completion */
  PW_TRACE_STAGED = 26, /* one chunk through bounce buffers; where: "fill" or "drain" */
  PW_TRACE_NIC = 27,    /* one operation of a NIC, from its post to its completion; where: the NIC */
  PW_TRACE_KERNEL = 28, /* of a GPU; tag: the number that CUPTI gave its launch */
  PW_TRACE_COPY = 29,   /* by a GPU; where: "host to device" and so on */
  PW_TRACE_FILL = 30,   /* of a GPU's memory */
  PW_TRACE_MARK = 31,   /* a moment that the program named */
  PW_TRACE_RANGE = 32,  /* a range of the program that need not nest with others */
  /* A collective that does not block: begins as the call that started it, which is PW_TRACE_COLLECTIVE, and
   * ends as its request was found complete. */
  PW_TRACE_COLLECTIVE_DONE = 33,
  PW_TRACE_PIECE = 34, /* what one path starts of a put or get that the route splits; in that one's call */
  PW_TRACE_COMM_MADE = 35, /* a moment; where: the communicator or the window of MPI */
  PW_TRACE_COMM_FREED = 36,
  PW_TRACE_WINDOW_MADE = 37,
  PW_TRACE_WINDOW_FREED = 38,
  PW_TRACE_CANCELLED = 39 /* a send that was cancelled: as PW_TRACE_SENT, which it has in its place */
};

/* Which clock the times of a ring are of. */
enum {
  PW_TRACE_CLOCK_HOST = 0, /* the host's time-stamp counter, or CLOCK_MONOTONIC in its place */
  PW_TRACE_CLOCK_NS = 1,   /* CLOCK_MONOTONIC */
  PW_TRACE_CLOCK_GPU = 2   /* the timer of the GPU of number `clock_of` */
};

typedef struct pw_trace_event {
  uint64_t begin;                               /* in ticks of the ring's clock */
  uint64_t duration : 44, name : 10, site : 10; /* site: the name of the place that called, or 0 */
  uint64_t bytes : 44, where : 10, kind : 10;   /* where: the name of a path or a communicator, or 0 */
  int32_t peer;                                 /* rank in the world; -1: none or any */
  int32_t tag;
} pw_trace_event;

/* A sum over like events. At level "profile" alike means alike in all that follows `name`, too. At level
 * "full" it sums the events that are not in the ring, because they were overwritten or are never written
 * there. */
typedef struct pw_trace_cell {
  uint32_t name;
  uint16_t where, site;
  int32_t peer;
  int32_t size_class; /* 0: no bytes; n: below 2^n, at least half of it */
  uint64_t count, bytes, ticks;
} pw_trace_cell;

typedef struct pw_trace_ring { /* the file: this, then `capacity` events */
  char magic[8];               /* "PWTRACE4" */
  uint32_t header_bytes, event_bytes, pid, tid;
  int32_t rank;
  uint32_t level;
  uint64_t capacity, written;  /* beyond the capacity the oldest were overwritten */
  uint64_t unnamed, uncounted; /* what found no name, or no cell */
  uint32_t names, depth;
  uint32_t clock, clock_of;
  uint64_t ticks[2], ns[2]; /* the clock against CLOCK_MONOTONIC, when opened and last */
  char host[64], source[16], thread[16];
  uint8_t at_start[PW_TRACE_NAMES / 8]; /* a bit for each name: a path whose puts and gets are complete when
                                           their call returns */
  char unused[48];                      /* events lie within lines of the cache */
  pw_trace_event
      open[PW_TRACE_OPEN]; /* what had begun and not ended; deeper ones are only counted, in depth */
  pw_trace_cell cell[PW_TRACE_CELLS];
  char name[PW_TRACE_NAMES][PW_TRACE_NAME_BYTES];
} pw_trace_ring;

/* One word for each process, beside its rings: all its recorders look at it before they record. It is read by
 * one load: the low byte says who has stopped recording, the rest counts who wants it: 1 for a whole process
 * that records, or the number of open regions among those that were requested. */
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
