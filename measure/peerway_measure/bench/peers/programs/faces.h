/* Block-strided parts of one array, and their places in one packed buffer: what a pack kernel is given by
 * value. C11, C++17, nvcc and NVRTC, so it includes nothing. */
#ifndef PEERS_FACES_H
#define PEERS_FACES_H

enum { FACE_MOST_DIMS = 6, FACES_MOST = 14 };

/* Blocks of `block_bytes`, count[0] the slowest; bytes throughout. */
typedef struct face {
  unsigned long long offset, block_bytes; /* offset: of the first block in the array */
  unsigned long long packed;              /* place in the packed buffer */
  unsigned dims;
  unsigned long long count[FACE_MOST_DIMS], stride[FACE_MOST_DIMS];
} face;

typedef struct face_list {
  unsigned n;
  face of[FACES_MOST];
} face_list;

#endif
