/* The clock of events: the time-stamp counter if the kernel itself uses it as clock source, else
 * CLOCK_MONOTONIC. */
#ifndef PEERWAY_TRACE_RECORDER_CLOCK_H
#define PEERWAY_TRACE_RECORDER_CLOCK_H

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peerway/trace/recorder/writer.h"

static __attribute__((noinline, unused)) uint64_t pw_trace_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t pw_trace_now(const pw_trace_writer* writer) {
#if defined(__x86_64__) && !defined(PEERWAY_TRACE_NO_TSC) /* tests define this to control the clock */
  if (__builtin_expect(writer->is_tsc, 1)) return __builtin_ia32_rdtsc();
#else
  (void)writer;
#endif
  return pw_trace_ns();
}

/* Returns whether the kernel itself keeps time by the time-stamp counter. Reading it takes half the time
 * of a clock_gettime(). */
static inline int pw_trace_trusts_tsc(void) {
  char text[8] = "";
#if defined(__x86_64__)
  const int file =
      open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (read(file, text, 4) < 0) text[0] = '\0';
  close(file);
#endif
  return strcmp(text, "tsc\n") == 0;
}

/* Reads both clocks at one moment; tries again if the thread was interrupted in between. */
static inline void pw_trace_read_clocks(const pw_trace_writer* writer, uint64_t* ticks, uint64_t* ns) {
  uint64_t best = ~0ull;
  for (int tries = 0; tries < 20 && best > 1000; ++tries) {
    const uint64_t before = pw_trace_now(writer), now = pw_trace_ns(), after = pw_trace_now(writer);
    if (after - before >= best) continue;
    best = after - before;
    *ticks = before + best / 2;
    *ns = now;
  }
}

static __attribute__((noinline, unused)) void pw_trace_read_clock(pw_trace_writer* writer, int which) {
  pw_trace_read_clocks(writer, &writer->ring->ticks[which], &writer->ring->ns[which]);
}

#endif
