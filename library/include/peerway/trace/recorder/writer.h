/* The state of a recorder: its writers, and the word that says whether the process records. */
#ifndef PEERWAY_TRACE_RECORDER_WRITER_H
#define PEERWAY_TRACE_RECORDER_WRITER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "peerway/trace/format.h"

/* The writer of one thread, or of one stream of a GPU, in this process's memory. */
typedef struct pw_trace_writer {
  pw_trace_ring* ring;
  pw_trace_event* events;
  uint64_t mask, mapped_bytes;
  uint64_t empty; /* number of events that find an empty place: at level full as many as the ring has */
  int level, is_tsc;
  unsigned clock; /* PW_TRACE_CLOCK_HOST and so on */
  /* The place that made the call that the thread is in: its name, or 0 and the address that the call
   * returns to; both are empty if it is unknown. */
  unsigned site;
  const void* returns_to;
  struct {
    const void* text;
    unsigned name;
  } known[256];
  struct {
    const void* address;
    unsigned name;
  } places[256];
} pw_trace_writer;

#ifdef __cplusplus
/* Each program and library has its own copy, because they are unloaded separately. */
#define PW_TRACE_ONCE __attribute__((visibility("hidden"))) inline
#if defined(PEERWAY_BUILD) && \
    defined(__x86_64__) /* accessed by one load; other libraries leave room for this in static TLS */
#define PW_TRACE_THREAD PW_TRACE_ONCE __attribute__((tls_model("initial-exec"))) thread_local
#else
#define PW_TRACE_THREAD PW_TRACE_ONCE thread_local
#endif
#define PW_TRACE_NULL nullptr
#else
#define PW_TRACE_ONCE static
#define PW_TRACE_THREAD static _Thread_local
#define PW_TRACE_NULL NULL
#endif

PW_TRACE_THREAD pw_trace_writer* pw_trace_mine = PW_TRACE_NULL;
PW_TRACE_THREAD int pw_trace_ended = 0; /* this thread records nothing more, or cannot record */
PW_TRACE_ONCE pthread_key_t pw_trace_key;
PW_TRACE_ONCE int pw_trace_prepared = 0;
PW_TRACE_ONCE pthread_mutex_t pw_trace_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Shared by all recorders of a process; points to a word that disables recording until pw_trace_attach()
 * is called. */
PW_TRACE_ONCE uint32_t pw_trace_nothing = 0;
PW_TRACE_ONCE uint32_t* pw_trace_word = &pw_trace_nothing;
PW_TRACE_ONCE const char* pw_trace_region =
    PW_TRACE_NULL; /* if set, only regions of this name are recorded */

#endif
