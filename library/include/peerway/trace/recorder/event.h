/* Events, from their begin to their place in the ring and in the sums. */
#ifndef PEERWAY_TRACE_RECORDER_EVENT_H
#define PEERWAY_TRACE_RECORDER_EVENT_H

#include <string.h>

#include "peerway/trace/recorder/clock.h"
#include "peerway/trace/recorder/writer.h"

/* Recording must be fast: time spent between a wait and the next put holds up another rank. If these
 * functions are inlined, an event stays in registers until it is written, which halves the number of
 * instructions. */
#define PW_TRACE_INLINE static inline __attribute__((always_inline))

/* Reads and writes events in words of 8 bytes: a wider load would have to wait until the stored words
 * reach the cache. */
PW_TRACE_INLINE uint64_t pw_trace_word_of(const pw_trace_event* event, int word) {
  uint64_t value;
  memcpy(&value, (const char*)event + 8 * word, sizeof value);
  return value;
}
PW_TRACE_INLINE void pw_trace_set(pw_trace_event* event, int word, uint64_t value) {
  memcpy((char*)event + 8 * word, &value, sizeof value);
}
PW_TRACE_INLINE void pw_trace_copy(pw_trace_event* to, const pw_trace_event* from) {
  uint64_t* words = (uint64_t*)to;
  __atomic_store_n(words, pw_trace_word_of(from, 0), __ATOMIC_RELAXED);
  __atomic_store_n(words + 1, pw_trace_word_of(from, 1), __ATOMIC_RELAXED);
  __atomic_store_n(words + 2, pw_trace_word_of(from, 2), __ATOMIC_RELAXED);
  __atomic_store_n(words + 3, pw_trace_word_of(from, 3), __ATOMIC_RELAXED);
}

/* Fills in an event that is about to begin. */
PW_TRACE_INLINE void pw_trace_fill(pw_trace_event* event, unsigned kind, unsigned name, uint64_t bytes,
                                   int32_t peer, int32_t tag) {
  pw_trace_set(event, 0, 0);
  pw_trace_set(event, 1, (uint64_t)(name & 0x3ff) << 44);
  pw_trace_set(event, 2, (bytes & ((1ull << 44) - 1)) | (uint64_t)kind << 54);
  pw_trace_set(event, 3, (uint32_t)peer | (uint64_t)(uint32_t)tag << 32);
}

/* Replaces the bits of `mask` in one word of an event. */
PW_TRACE_INLINE void pw_trace_change(pw_trace_event* event, int word, uint64_t mask, uint64_t value) {
  pw_trace_set(event, word, (pw_trace_word_of(event, word) & ~mask) | value);
}

/* Sets the place that made the call. */
PW_TRACE_INLINE void pw_trace_site(pw_trace_event* event, unsigned name) {
  pw_trace_change(event, 1, 0x3ffull << 54, (uint64_t)name << 54);
}

/* Sets the path, the communicator, or whatever else `where` holds for this kind of event. */
PW_TRACE_INLINE void pw_trace_where(pw_trace_event* event, unsigned name) {
  pw_trace_change(event, 2, 0x3ffull << 44, (uint64_t)(name & 0x3ff) << 44);
}

PW_TRACE_INLINE void pw_trace_begin(pw_trace_writer* writer, pw_trace_event* event) {
  pw_trace_ring* ring = writer->ring;
  const uint32_t depth = ring->depth;
  pw_trace_set(event, 0, pw_trace_now(writer));
  if (__builtin_expect(depth < PW_TRACE_OPEN, 1)) pw_trace_copy(&ring->open[depth], event);
  ring->depth = depth + 1;
}

/* Adds an event to the sums. */
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

#define PW_TRACE_LONGEST ((1ull << 44) - 1) /* ticks that fit into an event */

PW_TRACE_INLINE void pw_trace_end(pw_trace_writer* writer, pw_trace_event* event) {
  uint64_t ticks = pw_trace_now(writer) - pw_trace_word_of(event, 0);
  if (__builtin_expect(ticks > PW_TRACE_LONGEST, 0)) /* 0 if the clock stepped back */
    ticks = (int64_t)ticks < 0 ? 0 : PW_TRACE_LONGEST;
  pw_trace_change(event, 1, PW_TRACE_LONGEST, ticks);
  --writer->ring->depth;
}

/* Called when the ring has no empty place for one more event. At level full the oldest event is added to
 * the sums, at other levels this one. Returns whether the event must still be written. */
static __attribute__((noinline, unused)) int pw_trace_make_room(pw_trace_writer* writer,
                                                                const pw_trace_event* event) {
  const int full = writer->level == PW_TRACE_FULL;
  pw_trace_count(writer, full ? &writer->events[writer->ring->written & writer->mask] : event);
  return full;
}

/* Writes an event that has ended. At level full the sums cover the events that are no longer in the ring. */
PW_TRACE_INLINE void pw_trace_write(pw_trace_writer* writer, const pw_trace_event* event) {
  pw_trace_ring* ring = writer->ring;
  const uint64_t written = ring->written;
  if (__builtin_expect(written >= writer->empty, 0)) {
    const pw_trace_event copy =
        *event; /* a copy, because an event whose address is passed on would not stay in registers */
    if (!pw_trace_make_room(writer, &copy)) return;
  }
  pw_trace_copy(&writer->events[written & writer->mask], event);
  __atomic_store_n(&ring->written, written + 1,
                   __ATOMIC_RELEASE); /* so that a reader sees only whole events */
}

/* Call this once for each event, at a time when nobody waits for this thread. It prefetches the place of a
 * later event and reads the clock every millisecond or two, so that the times of a process that is killed
 * can still be converted. */
PW_TRACE_INLINE void pw_trace_prepare_next(pw_trace_writer* writer, uint64_t now) {
  pw_trace_ring* ring = writer->ring;
  __builtin_prefetch(&writer->events[(ring->written + 2) & writer->mask], 1);
  if (__builtin_expect((int64_t)(now - ring->ticks[1]) > 1 << 22, 0) && writer->clock != PW_TRACE_CLOCK_GPU)
    pw_trace_read_clock(writer, 1);
}

/* Calls pw_trace_write() and pw_trace_prepare_next(). */
PW_TRACE_INLINE void pw_trace_add(pw_trace_writer* writer, const pw_trace_event* event) {
  pw_trace_write(writer, event);
  pw_trace_prepare_next(writer, pw_trace_word_of(event, 0) + (pw_trace_word_of(event, 1) & PW_TRACE_LONGEST));
}

#endif
