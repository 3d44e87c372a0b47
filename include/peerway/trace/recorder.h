/* The recorder of `peerway trace`: a ring of 32-byte events for each thread, in a file that is mapped, so
 * that a process which is killed leaves what it had recorded. C11 (with _GNU_SOURCE) and C++, header only,
 * because three things record: the library, the preloaded MPI calls, and programs (peerway/trace.hpp).
 * python/peerway/trace/rings.py reads the files. Without PEERWAY_TRACE_DIR nothing is recorded. */
#ifndef PEERWAY_TRACE_RECORDER_H
#define PEERWAY_TRACE_RECORDER_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "peerway/trace/format.h"

/* Of one thread, in its own memory. */
typedef struct pw_trace_writer {
  pw_trace_ring* ring;
  pw_trace_event* events;
  uint64_t mask, mapped_bytes;
  int level, is_tsc;
  struct {
    const void* text;
    unsigned name;
  } known[256];
} pw_trace_writer;

#ifdef __cplusplus
/* One for each program and library, which are unloaded apart. */
#define PW_TRACE_ONCE __attribute__((visibility("hidden"))) inline
#define PW_TRACE_THREAD PW_TRACE_ONCE thread_local
#define PW_TRACE_NULL nullptr
#else
#define PW_TRACE_ONCE static
#define PW_TRACE_THREAD static _Thread_local
#define PW_TRACE_NULL NULL
#endif

PW_TRACE_THREAD pw_trace_writer* pw_trace_mine = PW_TRACE_NULL;
PW_TRACE_THREAD int pw_trace_ended = 0; /* this thread records nothing more, or cannot */
PW_TRACE_ONCE pthread_key_t pw_trace_key;
PW_TRACE_ONCE int pw_trace_prepared = 0;
PW_TRACE_ONCE pthread_mutex_t pw_trace_mutex = PTHREAD_MUTEX_INITIALIZER;

static inline uint64_t pw_trace_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t pw_trace_now(const pw_trace_writer* writer) {
#if defined(__x86_64__)
  if (writer->is_tsc) return __builtin_ia32_rdtsc();
#else
  (void)writer;
#endif
  return pw_trace_ns();
}

/* The time-stamp counter, where the kernel itself keeps time by it: half the cost of a call. */
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

/* 0: nothing is recorded. */
static inline int pw_trace_level(void) {
  const char *folder = getenv("PEERWAY_TRACE_DIR"), *level = getenv("PEERWAY_TRACE_LEVEL");
  if (folder == PW_TRACE_NULL || *folder == '\0') return 0;
  if (level == PW_TRACE_NULL || strcmp(level, "full") == 0) return PW_TRACE_FULL;
  if (strcmp(level, "profile") == 0) return PW_TRACE_PROFILE;
  return strcmp(level, "counters") == 0 ? PW_TRACE_COUNTERS : 0;
}

/* From the launcher's variables; -1: none. */
static inline int pw_trace_rank(void) {
  static const char* const variables[] = {"PEERWAY_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                          "SLURM_PROCID"};
  for (unsigned i = 0; i < sizeof variables / sizeof *variables; ++i)
    if (getenv(variables[i]) != PW_TRACE_NULL) return atoi(getenv(variables[i]));
  return -1;
}

/* Whether a rank is among those that record; one that is not known is. */
static inline int pw_trace_wants(int rank) {
  const char* list = getenv("PEERWAY_TRACE_RANKS");
  if (list == PW_TRACE_NULL || *list == '\0' || rank < 0) return 1;
  for (char* end; *list != '\0'; list = *end != '\0' ? end + 1 : end) {
    if (strtol(list, &end, 10) == rank) return 1;
    if (end == list) return 0;
  }
  return 0;
}

/* Both clocks at one moment: read again where the thread was interrupted between them. */
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

static inline void pw_trace_read_clock(pw_trace_writer* writer, int which) {
  pw_trace_read_clocks(writer, &writer->ring->ticks[which], &writer->ring->ns[which]);
}

/* A thread has ended: its ring is whole. */
static inline void pw_trace_leave(void* mine) {
  pw_trace_writer* writer = (pw_trace_writer*)mine;
  pw_trace_read_clock(writer, 1);
  munmap(writer->ring, writer->mapped_bytes);
  free(writer);
  pw_trace_mine = PW_TRACE_NULL;
  pw_trace_ended = 1;
}

/* A child has its parent's mappings and must not write into the parent's ring: it gets one of its own. */
static inline void pw_trace_forget(void) {
  pw_trace_mine = PW_TRACE_NULL;
  if (pw_trace_prepared) pthread_setspecific(pw_trace_key, PW_TRACE_NULL);
}

static inline void pw_trace_prepare(void) {
  pthread_mutex_lock(&pw_trace_mutex);
  if (!pw_trace_prepared && pthread_key_create(&pw_trace_key, pw_trace_leave) == 0) {
    pthread_atfork(PW_TRACE_NULL, PW_TRACE_NULL, pw_trace_forget);
    pw_trace_prepared = 1;
  }
  pthread_mutex_unlock(&pw_trace_mutex);
}

/* The number of a text in this ring; 0 where there is no room. The texts that were asked for last are found
 * by where they lie, and compared. */
static inline unsigned pw_trace_name(pw_trace_writer* writer, const char* text, size_t length) {
  pw_trace_ring* ring = writer->ring;
  const size_t slot = (((uintptr_t)text >> 3) ^ ((uintptr_t)text >> 11)) % 256;
  if (length >= PW_TRACE_NAME_BYTES) length = PW_TRACE_NAME_BYTES - 1;
  if (writer->known[slot].text == text) {
    const char* known = ring->name[writer->known[slot].name];
    if (memcmp(known, text, length) == 0 && known[length] == '\0') return writer->known[slot].name;
  }
  unsigned name = 1;
  while (name < ring->names &&
         (memcmp(ring->name[name], text, length) != 0 || ring->name[name][length] != '\0'))
    ++name;
  if (name == PW_TRACE_NAMES) {
    ++ring->unnamed;
    return 0;
  }
  if (name == ring->names) {
    memcpy(ring->name[name], text, length);
    __atomic_store_n(&ring->names, name + 1, __ATOMIC_RELEASE);
  }
  writer->known[slot].text = text;
  writer->known[slot].name = name;
  return name;
}

/* Takes the room now: a full disk must not end the program at a store. Gives an error number. */
static inline int pw_trace_map(const char* path, pw_trace_writer* writer, uint64_t* capacity) {
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  int error = 0;
  for (;; *capacity /= 2) {
    writer->mapped_bytes = sizeof(pw_trace_ring) + *capacity * sizeof(pw_trace_event);
    error = posix_fallocate(file, 0, (off_t)writer->mapped_bytes);
    if (error != ENOSPC || *capacity <= 64) break;
  }
  if (error == 0 && ftruncate(file, (off_t)writer->mapped_bytes) != 0) error = errno;
  void* at = MAP_FAILED;
  if (error == 0) {
    at = mmap(PW_TRACE_NULL, writer->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) error = errno;
  }
  close(file);
  if (error != 0) {
    unlink(path);
    return error;
  }
#ifdef MADV_POPULATE_WRITE
  madvise(at, writer->mapped_bytes, MADV_POPULATE_WRITE); /* older kernels map each page when it is written */
#endif
  writer->ring = (pw_trace_ring*)at;
  return 0;
}

/* A writer for this thread; PW_TRACE_NULL where nothing can be recorded, which was said on standard error.
 * `source` is what records: "core", "mpi", "program". */
static __attribute__((noinline, unused)) pw_trace_writer* pw_trace_open(const char* source) {
  static const char* const operations[] = {"put",   "get",        "raise",      "wait",
                                           "flush", "plan start", "plan finish"};
  const char *folder = getenv("PEERWAY_TRACE_DIR"), *events = getenv("PEERWAY_TRACE_EVENTS");
  const int level = pw_trace_level();
  char path[4096];
  if (pw_trace_ended || level == 0) return PW_TRACE_NULL;
  if (!pw_trace_wants(pw_trace_rank())) {
    pw_trace_ended = 1;
    return PW_TRACE_NULL;
  }
  uint64_t wanted = events != PW_TRACE_NULL ? strtoull(events, PW_TRACE_NULL, 10) : 262144, capacity = 64;
  while (capacity < wanted && capacity < (1ull << 32)) capacity *= 2;
  if (level != PW_TRACE_FULL) capacity = 0;
  const unsigned pid = (unsigned)getpid(), tid = (unsigned)syscall(SYS_gettid);
  pw_trace_prepare();
  pw_trace_writer* writer = (pw_trace_writer*)calloc(1, sizeof *writer);
  if (writer == PW_TRACE_NULL) return PW_TRACE_NULL;
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  snprintf(path, sizeof path, "%s/%s-%u-%u-%s.ring", folder, host, pid, tid, source);
  const int error = pw_trace_map(path, writer, &capacity);
  if (error != 0) {
    fprintf(stderr, "peerway: trace: cannot record thread %u in %s: %s; make room there, or lower --events\n",
            tid, path, strerror(error));
    free(writer);
    pw_trace_ended = 1;
    return PW_TRACE_NULL;
  }
  pw_trace_ring* ring = writer->ring;
  writer->events = (pw_trace_event*)(ring + 1);
  writer->mask = capacity - 1;
  writer->level = level;
  writer->is_tsc = pw_trace_trusts_tsc();
  ring->header_bytes = sizeof *ring;
  ring->event_bytes = sizeof(pw_trace_event);
  ring->pid = pid;
  ring->tid = tid;
  ring->rank = pw_trace_rank();
  ring->level = (uint32_t)level;
  ring->capacity = capacity;
  ring->names = 1;
  memcpy(ring->host, host, sizeof host);
  snprintf(ring->source, sizeof ring->source, "%s", source);
  pthread_getname_np(pthread_self(), ring->thread, sizeof ring->thread);
  for (unsigned i = 0; i < sizeof operations / sizeof *operations; ++i)
    pw_trace_name(writer, operations[i], strlen(operations[i]));
  pw_trace_read_clock(writer, 0);
  pw_trace_read_clock(writer, 1);
  memcpy(ring->magic, "PWTRACE1", 8);
  if (pw_trace_prepared) pthread_setspecific(pw_trace_key, writer);
  return pw_trace_mine = writer;
}

static inline void pw_trace_begin(pw_trace_writer* writer, pw_trace_event* event) {
  pw_trace_ring* ring = writer->ring;
  event->begin = pw_trace_now(writer);
  if (ring->depth < PW_TRACE_OPEN) ring->open[ring->depth] = *event;
  ++ring->depth;
}

static inline void pw_trace_count(pw_trace_writer* writer, const pw_trace_event* event) {
  pw_trace_ring* ring = writer->ring;
  uint32_t at = event->name;
  const int32_t size_class = event->bytes == 0 ? 0 : 64 - __builtin_clzll(event->bytes);
  if (writer->level == PW_TRACE_PROFILE) {
    const uint64_t key = (uint64_t)event->name << 40 ^ (uint64_t)event->where << 30 ^
                         (uint64_t)event->site << 20 ^ (uint64_t)(uint32_t)event->peer << 6 ^
                         (uint64_t)size_class;
    at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 52);
    for (unsigned tried = 0;; ++tried, at = (at + 1) % PW_TRACE_CELLS) {
      const pw_trace_cell* cell = &ring->cell[at];
      if (cell->count == 0 ||
          (cell->name == event->name && cell->where == event->where && cell->site == event->site &&
           cell->peer == event->peer && cell->size_class == size_class))
        break;
      if (tried == 64) {
        ++ring->uncounted;
        return;
      }
    }
  }
  pw_trace_cell* cell = &ring->cell[at];
  if (cell->count == 0) {
    cell->name = (uint32_t)event->name;
    if (writer->level == PW_TRACE_PROFILE) {
      cell->where = (uint16_t)event->where;
      cell->site = (uint16_t)event->site;
      cell->peer = event->peer;
      cell->size_class = size_class;
    }
  }
  cell->count += 1;
  cell->bytes += event->bytes;
  cell->ticks += event->duration;
}

static inline void pw_trace_end(pw_trace_writer* writer, pw_trace_event* event) {
  const uint64_t ticks = pw_trace_now(writer) - event->begin, longest = (1ull << 44) - 1;
  event->duration = (ticks < longest ? ticks : longest) & longest;
  --writer->ring->depth;
}

/* Writes an event that has ended. */
static inline void pw_trace_add(pw_trace_writer* writer, const pw_trace_event* event) {
  pw_trace_ring* ring = writer->ring;
  pw_trace_count(writer, event);
  if (writer->level != PW_TRACE_FULL) return;
  const uint64_t written = ring->written;
  writer->events[written & writer->mask] = *event;
  __atomic_store_n(&ring->written, written + 1, __ATOMIC_RELEASE); /* a reader sees whole events only */
  /* Every millisecond or two: a process that is killed leaves a clock that can be told. */
  if (event->begin + event->duration - ring->ticks[1] > 1u << 22 && event->begin > ring->ticks[1])
    pw_trace_read_clock(writer, 1);
}

#endif
