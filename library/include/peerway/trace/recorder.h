/* The recorder of `peerway trace`: a ring of 32-byte events for each thread, in a file that is mapped. It
 * is header only, for C11 (with _GNU_SOURCE) and C++, because four things record: the library, the
 * wrappers of MPI calls, the library that CUDA loads, and programs (peerway/trace.hpp).
 * trace/peerway_trace/rings.py reads the files. Without PEERWAY_TRACE_DIR nothing is recorded. */
#ifndef PEERWAY_TRACE_RECORDER_H
#define PEERWAY_TRACE_RECORDER_H

#include "peerway/trace/recorder/clock.h"
#include "peerway/trace/recorder/event.h"
#include "peerway/trace/recorder/place.h"
#include "peerway/trace/recorder/ring.h"
#include "peerway/trace/recorder/settings.h"
#include "peerway/trace/recorder/writer.h"

#endif
