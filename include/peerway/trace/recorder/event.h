/* An event from its beginning to its place in the ring and in the sums. */
#ifndef PEERWAY_TRACE_RECORDER_EVENT_H
#define PEERWAY_TRACE_RECORDER_EVENT_H

#include <string.h>

#include "peerway/trace/recorder/clock.h"
#include "peerway/trace/recorder/writer.h"

/* An event to be begun. */
static inline void pw_trace_fill(pw_trace_event* event, unsigned kind, unsigned name, uint64_t bytes,
                                 int32_t peer, int32_t tag) {
  const uint64_t words[4] = {0, (uint64_t)(name & 0x3ff) << 44,
                             (bytes & ((1ull << 44) - 1)) | (uint64_t)kind << 54,
                             (uint32_t)peer | (uint64_t)(uint32_t)tag << 32};
  memcpy(event, words, sizeof words);
}

/* Of a word of an event, the bits of `mask`. */
static inline void pw_trace_change(pw_trace_event* event, int word, uint64_t mask, uint64_t value) {
  uint64_t now;
  memcpy(&now, (const char*)event + 8 * word, sizeof now);
  now = (now & ~mask) | value;
  memcpy((char*)event + 8 * word, &now, sizeof now);
}

/* Says the path, the communicator, or what else an event went by. */
static inline void pw_trace_where(pw_trace_event* event, unsigned name) {
  pw_trace_change(event, 2, 0x3ffull << 44, (uint64_t)(name & 0x3ff) << 44);
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
  pw_trace_change(event, 1, longest,
                  (int64_t)ticks < 0 ? 0
                  : ticks < longest  ? ticks
                                     : longest); /* of a clock that steps back: 0 */
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
  if (event->begin + event->duration - ring->ticks[1] > 1u << 22 && event->begin > ring->ticks[1] &&
      writer->clock != PW_TRACE_CLOCK_GPU)
    pw_trace_read_clock(writer, 1);
}

#endif
