/* How the kernels of pack.cu are launched for a shape: word, threads and blocks. For the driver and the
 * runtime API. */
#ifndef PEERS_LAUNCH_H
#define PEERS_LAUNCH_H

#include "case.h"

typedef struct row_launch {
  int word;            /* bytes of a word: the kernel is copy_rows_<word> */
  unsigned threads[2]; /* x along a row, y over rows */
  unsigned blocks[2];
  unsigned long long rows, words, to_pitch, from_pitch; /* pitches in words */
} row_launch;

/* Rows of s.block_bytes between a packed buffer and the pitched array; `unpack` says which is the target. */
static inline row_launch launch_of(shape s, const void* to, const void* from, int unpack,
                                   int multiprocessors) {
  enum { THREADS = 256, WAVES = 8 };
  row_launch l;
  size_t all = s.block_bytes | s.pitch | (size_t)(uintptr_t)to | (size_t)(uintptr_t)from;
  l.word = all % 16 == 0 ? 16 : all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 1;
  l.rows = s.blocks;
  l.words = s.block_bytes / (size_t)l.word;
  unsigned long long packed = l.words, pitched = s.pitch / (size_t)l.word;
  l.to_pitch = unpack ? pitched : packed;
  l.from_pitch = unpack ? packed : pitched;
  unsigned x = 1;
  while (x < l.words && x < THREADS) x *= 2;
  l.threads[0] = x;
  l.threads[1] = THREADS / x;
  unsigned long long across = (l.words + x - 1) / x, down = (l.rows + l.threads[1] - 1) / l.threads[1];
  unsigned long long most = (unsigned long long)multiprocessors * WAVES;
  across = across < most ? across : most;
  unsigned long long most_down = most / across ? most / across : 1;
  l.blocks[0] = (unsigned)across;
  l.blocks[1] = (unsigned)(down < most_down ? down : most_down < 65535 ? most_down : 65535);
  return l;
}

#endif
