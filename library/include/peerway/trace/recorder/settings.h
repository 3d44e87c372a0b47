/* Decides which events are recorded: from the variables that `peerway trace` sets, and from the word in
 * memory that it may change while the program runs. */
#ifndef PEERWAY_TRACE_RECORDER_SETTINGS_H
#define PEERWAY_TRACE_RECORDER_SETTINGS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peerway/trace/recorder/writer.h"

/* Returns the level; 0: nothing is recorded. */
static inline int pw_trace_level(void) {
  const char *folder = getenv("PEERWAY_TRACE_DIR"), *level = getenv("PEERWAY_TRACE_LEVEL");
  if (folder == PW_TRACE_NULL || *folder == '\0') return 0;
  if (level == PW_TRACE_NULL || strcmp(level, "full") == 0) return PW_TRACE_FULL;
  if (strcmp(level, "profile") == 0) return PW_TRACE_PROFILE;
  return strcmp(level, "counters") == 0 ? PW_TRACE_COUNTERS : 0;
}

/* Returns the rank from the launcher's variables, or -1 if there are none. */
static inline int pw_trace_rank(void) {
  static const char* const variables[] = {"PEERWAY_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                          "SLURM_PROCID"};
  for (unsigned i = 0; i < sizeof variables / sizeof *variables; ++i)
    if (getenv(variables[i]) != PW_TRACE_NULL) return atoi(getenv(variables[i]));
  return -1;
}

/* Returns whether a rank is among those that record; a process whose rank is unknown records. */
static inline int pw_trace_wants(int rank) {
  const char* list = getenv("PEERWAY_TRACE_RANKS");
  if (list == PW_TRACE_NULL || *list == '\0' || rank < 0) return 1;
  for (char* end; *list != '\0'; list = *end != '\0' ? end + 1 : end) {
    if (strtol(list, &end, 10) == rank) return 1;
    if (end == list) return 0;
  }
  return 0;
}

/* Maps the gate of this process; its first recorder makes the file. Returns PW_TRACE_NULL if that fails;
 * standard error then says why. */
static inline pw_trace_gate* pw_trace_map_gate(const char* folder) {
  char path[4096], host[64] = "";
  gethostname(host, sizeof host - 1);
  snprintf(path, sizeof path, "%s/%s-%u.process", folder, host, (unsigned)getpid());
  int error = 0, file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* at = MAP_FAILED;
  if (file < 0) {
    error = errno;
  } else {
    error = posix_fallocate(file, 0, 4096);
    if (error == 0) at = mmap(PW_TRACE_NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (error == 0 && at == MAP_FAILED) error = errno;
    close(file);
  }
  if (error == 0) return (pw_trace_gate*)at;
  fprintf(stderr, "peerway: trace: process %u records nothing: %s: %s; make room there\n", (unsigned)getpid(),
          path, strerror(error));
  return PW_TRACE_NULL;
}

/* Returns whether recording is stopped for the whole job; `peerway trace stop` leaves a file that says so. */
static inline int pw_trace_job_stopped(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/stopped", folder);
  return access(path, F_OK) == 0;
}

/* Call this before anything is recorded, and again in a child of fork(). Returns 0 if nothing is recorded. */
static inline int pw_trace_attach(void) {
  if (pw_trace_word != &pw_trace_nothing) return 1;
  if (pw_trace_level() == 0) return 0;
  const char *folder = getenv("PEERWAY_TRACE_DIR"), *region = getenv("PEERWAY_TRACE_REGION");
  pw_trace_gate* gate = pw_trace_map_gate(folder);
  if (gate == PW_TRACE_NULL) return 0;
  if (region != PW_TRACE_NULL && *region != '\0') pw_trace_region = region;
  /* Only the first recorder initialises the word. It does so before it looks whether the job is stopped,
   * so that it cannot miss a stop that comes in between. */
  uint32_t none = 0;
  const uint32_t begun = 0x80000000u | (pw_trace_region == PW_TRACE_NULL ? (uint32_t)PW_TRACE_WANTED : 0);
  memcpy(gate->magic, "PWGATE 1", 8);
  __atomic_compare_exchange_n(&gate->word, &none, begun, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (pw_trace_job_stopped(folder))
    __atomic_or_fetch(&gate->word, (uint32_t)PW_TRACE_STOPPED, __ATOMIC_RELAXED);
  pw_trace_word = &gate->word;
  return 1;
}

/* The one branch that an operation needs when nothing is recorded. */
static inline int pw_trace_recording(void) {
  const uint32_t word = __atomic_load_n(pw_trace_word, __ATOMIC_RELAXED);
  return (word & 0x7fffff00u) != 0 && (word & 0xffu) == 0;
}

/* Returns whether a region of this name is the one that was asked for with PEERWAY_TRACE_REGION. */
static inline int pw_trace_counts(const char* name, size_t length) {
  return pw_trace_region != PW_TRACE_NULL && strlen(pw_trace_region) == length &&
         memcmp(pw_trace_region, name, length) == 0;
}
static inline void pw_trace_region_begins(void) {
  __atomic_add_fetch(pw_trace_word, (uint32_t)PW_TRACE_WANTED, __ATOMIC_RELAXED);
}
static inline void pw_trace_region_ends(void) {
  __atomic_sub_fetch(pw_trace_word, (uint32_t)PW_TRACE_WANTED, __ATOMIC_RELAXED);
}

#endif
