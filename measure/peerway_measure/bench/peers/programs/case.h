/* One case to measure: a test of one shape and size, as the harness spells it on the command line. C11 and
 * C++17. */
#ifndef PEERS_CASE_H
#define PEERS_CASE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the ranks of a pair move the bytes. The test's name on the command line decides. */
typedef enum pattern {
  PING_PONG,  /* there and back: put_latency, pingpong, signal_latency, cube, plan_latency, kernel_latency */
  EXCHANGE,   /* both ways at once, complete on all sides: exchange, halo */
  PUT_WINDOW, /* a window of messages one way: put_bw, put_mbw_mr */
  PUT_BOTH,   /* windows both ways at once: put_bibw */
  GET_EACH,   /* one get at a time, complete: get_latency */
  GET_WINDOW  /* a window of gets: get_bw */
} pattern;

/* Blocks of `block_bytes` that start `pitch` bytes apart; one block when contiguous. */
typedef struct shape {
  size_t blocks, block_bytes, pitch;
} shape;

typedef struct bench_case {
  char via[32], test[32], label[128]; /* label: the shape as the records spell it */
  pattern how;
  shape form;
  size_t bytes;    /* of one message: blocks * block_bytes */
  long window;     /* messages in one window; 1 for latencies */
  int touch;       /* the receiver reads what arrived before it answers */
  long iterations; /* samples to take; 0: as many as fit the budget */
} bench_case;

static inline size_t extent(shape s) { return s.blocks ? (s.blocks - 1) * s.pitch + s.block_bytes : 0; }

static inline int contiguous(shape s) { return s.blocks == 1 || s.pitch == s.block_bytes; }

/* Ends the process: these programs are one measurement each, and their harness reports the message. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static inline void die(const char* format, ...) {
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  fflush(stderr);
  _exit(2);
}

static inline pattern pattern_of(const char* test) {
  static const struct {
    const char* test;
    pattern how;
  } known[] = {{"put_latency", PING_PONG},  {"pingpong", PING_PONG},       {"signal_latency", PING_PONG},
               {"cube", PING_PONG},         {"put_bw", PUT_WINDOW},        {"put_mbw_mr", PUT_WINDOW},
               {"put_bibw", PUT_BOTH},      {"get_latency", GET_EACH},     {"get_bw", GET_WINDOW},
               {"plan_latency", PING_PONG}, {"kernel_latency", PING_PONG}, {"exchange", EXCHANGE},
               {"halo", EXCHANGE}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (!strcmp(known[i].test, test)) return known[i].how;
  die("test '%s' is not known to this program", test);
}

/* "via,test,label,blocks,block_bytes,pitch,window,iterations" */
static inline bench_case parse_case(const char* text) {
  bench_case c;
  memset(&c, 0, sizeof c);
  int fields = sscanf(text, "%31[^,],%31[^,],%127[^,],%zu,%zu,%zu,%ld,%ld", c.via, c.test, c.label,
                      &c.form.blocks, &c.form.block_bytes, &c.form.pitch, &c.window, &c.iterations);
  if (fields != 8) die("'%s' is not a case: %d of 8 fields could be read", text, fields);
  if (!c.form.blocks || !c.form.block_bytes || c.form.pitch < c.form.block_bytes || c.window < 1)
    die("'%s' is not a case: blocks, block bytes and window are at least 1, and blocks do not overlap", text);
  c.how = pattern_of(c.test);
  c.touch = !strcmp(c.test, "pingpong");
  c.bytes = c.form.blocks * c.form.block_bytes;
  return c;
}

#endif
