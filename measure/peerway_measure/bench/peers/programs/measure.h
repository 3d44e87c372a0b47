/* The measuring loop that all peer programs share: validate once, estimate, warm up, take samples, print a
 * line of JSON. A program gives the few functions that its library needs. C11 and C++17. */
#ifndef PEERS_MEASURE_H
#define PEERS_MEASURE_H

#include <math.h>
#include <sys/resource.h>
#include <time.h>

#include "data.h"

typedef struct program program;

/* One library's way of doing a case. Errors that only this case has are returned as text, the same on every
 * rank. */
typedef struct operations {
  /* Makes source and target (each of extent bytes) ready. NULL, or why this case cannot be done. */
  const char* (*open)(program*, const bench_case*);
  void (*close)(program*, const bench_case*);
  /* Does n samples. The rank that measures (for EXCHANGE: every rank) fills us[n]: one way for PING_PONG, the
   * whole exchange, window or get otherwise. When it returns on all ranks, all bytes have arrived. */
  void (*repeat)(program*, const bench_case*, long n, double* us);
  /* Copies between host memory and source or target. */
  void (*copy)(program*, void* to, const void* from, size_t bytes);
  /* Replaces each of the n values by its maximum over all ranks, on every rank. */
  void (*maximum)(program*, double* values, long n);
  /* How many trips one sample is the mean of; NULL: 1. */
  long (*batch)(program*, const bench_case*);
  /* One run on random data: whether this rank got exactly what it should. NULL: validate_pair() is used. */
  int (*validate)(program*, const bench_case*, int index);
} operations;

struct program {
  const operations* can;
  int rank, ranks;
  int any_number;      /* 1: runs with any number of ranks; 0: needs pairs */
  const char* library; /* name and version */
  const char* device;  /* what the memory is on: "host" or the GPU's name */
  void *source, *target;
};

typedef struct usage {
  double wall_us, cpu_us;
} usage;

static inline double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline usage usage_now(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  usage u;
  u.wall_us = now_us();
  u.cpu_us = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
             (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
  return u;
}

/* Pairs are (0, half), (1, half + 1), ...: with two ranks 0 and 1. The lower rank sends first and measures.
 */
static inline int sends(const program* p) { return p->rank < p->ranks / 2; }
static inline int other(const program* p) {
  return sends(p) ? p->rank + p->ranks / 2 : p->rank - p->ranks / 2;
}

static inline void wait_for_all(program* p) {
  double nothing = 0;
  p->can->maximum(p, &nothing, 1);
}

static inline double agree(program* p, double value) {
  p->can->maximum(p, &value, 1);
  return value;
}

static inline long trips(program* p, const bench_case* c) { return p->can->batch ? p->can->batch(p, c) : 1; }

static inline int receives(const program* p, pattern how) {
  if (how == PING_PONG || how == PUT_BOTH || how == EXCHANGE) return 1;
  return how == PUT_WINDOW ? !sends(p) : sends(p);
}

/* Reads one byte of every cache line that arrived in host memory, as a consumer of the data would: the test
 * "pingpong" does so before it answers. */
static inline void touch(const program* p, const bench_case* c) {
  if (!c->touch) return;
  for (size_t b = 0; b < c->form.blocks; ++b) {
    const volatile unsigned char* block = (const volatile unsigned char*)p->target + b * c->form.pitch;
    for (size_t at = 0; at < c->form.block_bytes; at += 64) (void)block[at];
  }
}

static inline void* host_bytes(size_t bytes) {
  void* address = malloc(bytes ? bytes : 1);
  if (!address) die("no memory: malloc of %zu bytes failed", bytes);
  return address;
}

/* One run of the case on random data; whether this rank, if it receives, got exactly what was sent. */
static inline int validate_pair(program* p, const bench_case* c, int index) {
  size_t bytes = extent(c->form);
  unsigned char *image = (unsigned char*)host_bytes(bytes), *scratch = (unsigned char*)host_bytes(bytes);
  double unused = 0;
  fill_random(image, bytes, p->rank, index);
  p->can->copy(p, p->source, image, bytes);
  memset(image, POISON, bytes);
  p->can->copy(p, p->target, image, bytes);
  wait_for_all(p);
  p->can->repeat(p, c, 1, &unused);
  wait_for_all(p);
  int right = 1;
  if (receives(p, c->how)) {
    p->can->copy(p, image, p->target, bytes);
    right = is_what_was_sent(image, scratch, c->form, other(p), index);
  }
  free(image);
  free(scratch);
  return right;
}

/* Whether all ranks got what they should. */
static inline int validate(program* p, const bench_case* c, int index) {
  int right = p->can->validate ? p->can->validate(p, c, index) : validate_pair(p, c, index);
  return agree(p, right ? 0 : 1) == 0;
}

static inline int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Linear between the two nearest ranks, as NumPy's default. `sorted` is ascending. */
static inline double percentile(const double* sorted, long n, double percent) {
  double at = percent / 100 * (double)(n - 1);
  long below = (long)at;
  long above = below + 1 < n ? below + 1 : below;
  return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

/* Takes n samples. Each is the time of the slowest pair: a window ends when all pairs have finished. */
static inline void take(program* p, const bench_case* c, long n, double* us) {
  memset(us, 0, (size_t)n * sizeof *us);
  p->can->repeat(p, c, n, us);
  p->can->maximum(p, us, n);
}

enum { FEWEST = 10, MOST_LATENCIES = 20000, MOST_WINDOWS = 1000 };

/* The number of samples that fit the budget, estimated from the shortest of up to 57 trial samples. */
static inline long samples_that_fit(program* p, const bench_case* c, double budget_us) {
  static const long stages[] = {2, 5, 50};
  double us[50], least = HUGE_VAL, batch = (double)trips(p, c);
  double trips = c->how == PING_PONG ? 2 * batch : batch;
  for (int s = 0; s < 3; ++s) {
    if (s && least * trips * (double)stages[s] > 2 * budget_us / s) break;
    take(p, c, stages[s], us);
    for (long i = 0; i < stages[s]; ++i) least = us[i] < least ? us[i] : least;
  }
  double most =
      c->how == PUT_WINDOW || c->how == PUT_BOTH || c->how == GET_WINDOW ? MOST_WINDOWS : MOST_LATENCIES;
  double sample_us = least * trips;
  double n = budget_us / (sample_us > 1e-3 ? sample_us : 1e-3);
  n = n > most ? most : n < FEWEST ? FEWEST : n;
  return (long)agree(p, n);
}

static inline void print_text(const char* text) { /* as a JSON string */
  putchar('"');
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') putchar('\\');
    putchar((unsigned char)*text < 0x20 ? ' ' : *text);
  }
  putchar('"');
}

static inline void print_result(const program* p, const bench_case* c, const double* sorted, long n,
                                double mean, int validated, double cpu, long batch) {
  double p50 = percentile(sorted, n, 50);
  int streams = c->how == PUT_BOTH ? 2 : c->how == PING_PONG || c->how == EXCHANGE ? 1 : p->ranks / 2;
  double rate = p50 > 0 ? streams * 1e6 / p50 : 0;
  printf("{\"via\":\"%s\",\"test\":\"%s\",\"shape\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"iterations\":%ld,",
         c->via, c->test, c->label, c->bytes, p->ranks, n);
  printf("\"window\":%ld,\"batch\":%ld,\"p50_us\":%.7g,\"p99_us\":%.7g,\"min_us\":%.7g,\"mean_us\":%.7g,",
         c->window, batch, p50, percentile(sorted, n, 99), sorted[0], mean);
  printf("\"bandwidth_MBps\":%.7g,\"messages_per_s\":%.7g,\"validated\":%s,\"cpu_percent\":%.4g,\"library\":",
         (double)c->bytes * rate * 1e-6, rate, validated ? "true" : "false", cpu);
  print_text(p->library);
  printf(",\"device\":");
  print_text(p->device);
  printf("}\n");
  fflush(stdout);
}

static inline void measure_case(program* p, const bench_case* c, int index, double budget_us) {
  int validated = validate(p, c, index);
  long n = c->iterations > 0 ? c->iterations : samples_that_fit(p, c, budget_us);
  double* us = (double*)host_bytes((size_t)n * sizeof *us);
  take(p, c, n / 10 + 1, us); /* warm-up */
  memset(us, 0, (size_t)n * sizeof *us);
  wait_for_all(p);
  usage before = usage_now();
  p->can->repeat(p, c, n, us);
  usage after = usage_now();
  p->can->maximum(p, us, n);
  double total = 0;
  for (long i = 0; i < n; ++i) total += us[i] /= (double)c->window;
  qsort(us, (size_t)n, sizeof *us, ascending);
  double wall = after.wall_us - before.wall_us;
  double cpu = wall > 0 ? 100 * (after.cpu_us - before.cpu_us) / wall : 0;
  if (!p->rank) print_result(p, c, us, n, total / (double)n, validated, cpu, trips(p, c));
  free(us);
}

/* Value of "--name value" on the command line, or `otherwise`. */
static inline const char* option(int argc, char** argv, const char* name, const char* otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (!strcmp(argv[i], name)) return argv[i + 1];
  return otherwise;
}

/* Measures every "--case" of the command line, each within "--budget-us". Rank 0 says on stdout which case
 * begins, so that the harness knows which one ended the program. */
static inline void measure_all(program* p, int argc, char** argv) {
  if (!p->any_number && (p->ranks < 2 || p->ranks % 2))
    die("%d ranks cannot be paired; start an even number", p->ranks);
  double budget_us = atof(option(argc, argv, "--budget-us", "100000"));
  int index = 0;
  for (int i = 1; i + 1 < argc; ++i) {
    if (strcmp(argv[i], "--case")) continue;
    bench_case c = parse_case(argv[i + 1]);
    if (!p->rank) printf("{\"begin\":%d}\n", index), fflush(stdout);
    const char* why = p->can->open(p, &c);
    if (!why) {
      measure_case(p, &c, index, budget_us);
      p->can->close(p, &c);
    } else if (!p->rank) {
      printf("{\"refused\":"), print_text(why), printf("}\n"), fflush(stdout);
    }
    ++index;
  }
}

#endif
