/* The bytes that are sent and the check that exactly they arrived. Random data, a poisoned target, and the
 * gaps between blocks must stay poisoned. */
#ifndef PEERS_DATA_H
#define PEERS_DATA_H

#include "case.h"

enum { POISON = 0xa5 };

static inline uint64_t mixed(uint64_t x) { /* splitmix64 (Steele, Lea, Flood 2014) */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* What `rank` sends in case number `index`: reproducible, so that the receiver can tell it without a message.
 */
static inline void fill_random(unsigned char* to, size_t bytes, int rank, int index) {
  uint64_t seed = mixed(((uint64_t)(unsigned)rank << 32) | (unsigned)index);
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t word = mixed(seed + at);
    memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

/* Whether `received` (a whole target, extent bytes) holds what `sender` sends in its blocks and poison
 * elsewhere. `scratch` has the same size. */
static inline int is_what_was_sent(const unsigned char* received, unsigned char* scratch, shape s, int sender,
                                   int index) {
  fill_random(scratch, extent(s), sender, index);
  for (size_t b = 0; b + 1 < s.blocks; ++b)
    memset(scratch + b * s.pitch + s.block_bytes, POISON, s.pitch - s.block_bytes);
  return !memcmp(received, scratch, extent(s));
}

#endif
