/* The places of the program that make recorded calls. */
#ifndef PEERWAY_TRACE_RECORDER_PLACE_H
#define PEERWAY_TRACE_RECORDER_PLACE_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "peerway/trace/recorder/ring.h"

static __attribute__((noinline, unused)) unsigned pw_trace_find_place(pw_trace_writer* writer,
                                                                      const void* returns_to,
                                                                      const char* not_in) {
  Dl_info of;
  char text[PW_TRACE_NAME_BYTES] = "";
  if (dladdr(returns_to, &of) == 0 || of.dli_fname == PW_TRACE_NULL) return 0;
  if (not_in != PW_TRACE_NULL && strstr(of.dli_fname, not_in) != PW_TRACE_NULL) return 0;
  /* Subtracts 1, because the call is before its return address. */
  snprintf(text, sizeof text, "0x%lx in %s",
           (unsigned long)((const char*)returns_to - (const char*)of.dli_fbase - 1), of.dli_fname);
  return pw_trace_name(writer, text, strlen(text));
}

/* Returns the name of the place that a function returns to, an address in a file, as
 * trace/peerway_trace/sites.py reads it. Returns 0 if the place is unknown or if the file's name contains
 * `not_in`, which names a library between the program and the recorded function. */
static inline unsigned pw_trace_place(pw_trace_writer* writer, const void* returns_to, const char* not_in) {
  const size_t slot = ((uintptr_t)returns_to ^ (uintptr_t)returns_to >> 8) % 256;
  if (writer->places[slot].address != returns_to) {
    writer->places[slot].name = pw_trace_find_place(writer, returns_to, not_in);
    writer->places[slot].address = returns_to;
  }
  return writer->places[slot].name;
}

#endif
