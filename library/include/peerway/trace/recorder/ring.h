/* Rings: one file for each thread, made and mapped at the thread's first event. If the process is killed,
 * the files still hold what it had recorded. */
#ifndef PEERWAY_TRACE_RECORDER_RING_H
#define PEERWAY_TRACE_RECORDER_RING_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peerway/trace/recorder/clock.h"
#include "peerway/trace/recorder/settings.h"

/* Closes a ring to which no more events are written. */
static inline void pw_trace_close(pw_trace_writer* writer) {
  if (writer->clock != PW_TRACE_CLOCK_GPU) pw_trace_read_clock(writer, 1);
  munmap(writer->ring, writer->mapped_bytes);
  free(writer);
}

/* Closes the ring of a thread that ends. */
static inline void pw_trace_leave(void* mine) {
  pw_trace_writer* writer = (pw_trace_writer*)mine;
  pw_trace_close(writer);
  pw_trace_mine = PW_TRACE_NULL;
  pw_trace_ended = 1;
}

/* Runs in a child after fork(). The child has its parent's mappings but must not write into the parent's
 * ring, so it gets a ring of its own. */
static inline void pw_trace_forget(void) {
  pw_trace_mine = PW_TRACE_NULL;
  if (pw_trace_prepared) pthread_setspecific(pw_trace_key, PW_TRACE_NULL);
  if (pw_trace_word != &pw_trace_nothing) {
    pw_trace_word = &pw_trace_nothing;
    pw_trace_attach();
  }
}

static inline void pw_trace_prepare(void) {
  pthread_mutex_lock(&pw_trace_mutex);
  if (!pw_trace_prepared && pthread_key_create(&pw_trace_key, pw_trace_leave) == 0) {
    pthread_atfork(PW_TRACE_NULL, PW_TRACE_NULL, pw_trace_forget);
    pw_trace_prepared = 1;
  }
  pthread_mutex_unlock(&pw_trace_mutex);
}

/* Returns the number of a text in this ring, or 0 if there is no room. Recent texts are found by their
 * address, and compared. */
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

/* Maps a ring and allocates its disk space now, because on a full disk a later store would end the
 * program. Returns an error number. */
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
  madvise(at, writer->mapped_bytes,
          MADV_POPULATE_WRITE); /* older kernels map each page when it is first written */
#endif
  writer->ring = (pw_trace_ring*)at;
  return 0;
}

/* Returns whether a ring may lie in the memory file system: half of its size, or 4 GiB, must stay free for
 * other files of the program.
 */
static inline int pw_trace_fits(const char* folder, uint64_t bytes) {
  struct statvfs room;
  if (folder == PW_TRACE_NULL || *folder == '\0' || statvfs(folder, &room) != 0) return 0;
  const uint64_t half = (uint64_t)room.f_blocks * room.f_frsize / 2, most = 4ull << 30;
  return (uint64_t)room.f_bavail * room.f_frsize >= bytes + (half < most ? half : most);
}

/* The properties of a ring. */
typedef struct pw_trace_track {
  const char* source; /* the recorder: "core", "program", "gpu", an MPI */
  const char* thread; /* PW_TRACE_NULL: the name of this thread */
  unsigned tid;       /* of the operating system; tracks that are not threads have 0x40000000 and more */
  unsigned clock, clock_of;
  uint64_t most; /* number of events, if less than the setting; 0: use the setting */
} pw_trace_track;

enum { PW_TRACE_PATH = 4096 };

/* Writes the path of a ring's file to `path` and returns it. */
static inline const char* pw_trace_path(char* path, const char* folder, const char* host,
                                        const pw_trace_track* track) {
  snprintf(path, PW_TRACE_PATH, "%s/%s-%u-%u-%s.ring", folder, host, (unsigned)getpid(), track->tid,
           track->source);
  return path;
}

/* Makes a writer with a ring of its own. Returns PW_TRACE_NULL if nothing can be recorded; standard error
 * then says why. */
static __attribute__((noinline, unused)) pw_trace_writer* pw_trace_make(const pw_trace_track* track) {
  static const char* const operations[] = {"put",   "get",        "notify",     "wait",
                                           "flush", "plan start", "plan finish"};
  const char *folder = getenv("PEERWAY_TRACE_DIR"), *memory = getenv("PEERWAY_TRACE_MEMORY"),
             *events = getenv("PEERWAY_TRACE_EVENTS");
  const int level = pw_trace_level();
  char path[PW_TRACE_PATH], host[64] = "";
  if (level == 0 || !pw_trace_wants(pw_trace_rank())) return PW_TRACE_NULL;
  uint64_t wanted = events != PW_TRACE_NULL ? strtoull(events, PW_TRACE_NULL, 10) : 262144, capacity = 64;
  if (track->most != 0 && track->most < wanted) wanted = track->most;
  while (capacity < wanted && capacity < (1ull << 32)) capacity *= 2;
  if (level != PW_TRACE_FULL) capacity = 0;
  pw_trace_prepare();
  pw_trace_writer* writer = (pw_trace_writer*)calloc(1, sizeof *writer);
  if (writer == PW_TRACE_NULL) return PW_TRACE_NULL;
  gethostname(host, sizeof host - 1);
  /* In memory if there is room, else in the folder. */
  int error = -1;
  if (pw_trace_fits(memory, sizeof(pw_trace_ring) + capacity * sizeof(pw_trace_event)))
    error = pw_trace_map(pw_trace_path(path, memory, host, track), writer, &capacity);
  if (error != 0) error = pw_trace_map(pw_trace_path(path, folder, host, track), writer, &capacity);
  if (error != 0) {
    fprintf(stderr, "peerway: trace: cannot record thread %u in %s: %s; make room there, or lower --events\n",
            track->tid, path, strerror(error));
    free(writer);
    return PW_TRACE_NULL;
  }
  pw_trace_ring* ring = writer->ring;
  writer->events = (pw_trace_event*)(ring + 1);
  writer->mask = capacity - 1;
  writer->empty = capacity;
  writer->level = level;
  writer->clock = track->clock;
  writer->is_tsc = track->clock == PW_TRACE_CLOCK_HOST && pw_trace_trusts_tsc();
  ring->header_bytes = sizeof *ring;
  ring->event_bytes = sizeof(pw_trace_event);
  ring->pid = (unsigned)getpid();
  ring->tid = track->tid;
  ring->rank = pw_trace_rank();
  ring->level = (uint32_t)level;
  ring->capacity = capacity;
  ring->names = 1;
  ring->clock = track->clock;
  ring->clock_of = track->clock_of;
  memcpy(ring->host, host, sizeof host);
  snprintf(ring->source, sizeof ring->source, "%s", track->source);
  if (track->thread != PW_TRACE_NULL)
    snprintf(ring->thread, sizeof ring->thread, "%s", track->thread);
  else
    pthread_getname_np(pthread_self(), ring->thread, sizeof ring->thread);
  for (unsigned i = 0; i < sizeof operations / sizeof *operations; ++i)
    pw_trace_name(writer, operations[i], strlen(operations[i]));
  if (track->clock != PW_TRACE_CLOCK_GPU) {
    pw_trace_read_clock(writer, 0);
    pw_trace_read_clock(writer, 1);
  }
  memcpy(ring->magic, "PWTRACE4", 8);
  return writer;
}

/* Makes the writer of this thread; called at the thread's first event. */
static __attribute__((noinline, unused)) pw_trace_writer* pw_trace_open(const char* source) {
  const pw_trace_track track = {source, PW_TRACE_NULL, (unsigned)syscall(SYS_gettid), PW_TRACE_CLOCK_HOST, 0,
                                0};
  if (pw_trace_ended || pw_trace_level() == 0) return PW_TRACE_NULL;
  pw_trace_writer* writer = pw_trace_make(&track);
  if (writer == PW_TRACE_NULL)
    pw_trace_ended = 1;
  else if (pw_trace_prepared)
    pthread_setspecific(pw_trace_key, writer);
  return pw_trace_mine = writer;
}

#endif
