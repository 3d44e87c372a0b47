// Packs and unpacks a face on the GPU the way a careful CUDA programmer would: the widest word that sizes and
// addresses allow, neighbouring threads on neighbouring bytes, no division in the inner loop. Compiled by
// nvcc or NVRTC.
#include "faces.h"

// Copies `rows` rows of `words` words. x of the thread runs along a row, y over rows; pitches are in words.
template <class Word>
__device__ void copy_rows(Word* to, const Word* from, unsigned long long rows, unsigned long long words,
                          unsigned long long to_pitch, unsigned long long from_pitch) {
  unsigned long long first_row = (unsigned long long)blockIdx.y * blockDim.y + threadIdx.y;
  unsigned long long first_word = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long row_step = (unsigned long long)gridDim.y * blockDim.y;
  unsigned long long word_step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long row = first_row; row < rows; row += row_step)
    for (unsigned long long word = first_word; word < words; word += word_step)
      to[row * to_pitch + word] = from[row * from_pitch + word];
}

#define COPY_ROWS(name, Word)                                                                             \
  extern "C" __global__ void name(void* to, const void* from, unsigned long long rows,                    \
                                  unsigned long long words, unsigned long long to_pitch,                  \
                                  unsigned long long from_pitch) {                                        \
    copy_rows(static_cast<Word*>(to), static_cast<const Word*>(from), rows, words, to_pitch, from_pitch); \
  }

COPY_ROWS(copy_rows_16, uint4)
COPY_ROWS(copy_rows_8, unsigned long long)
COPY_ROWS(copy_rows_4, unsigned int)
COPY_ROWS(copy_rows_1, unsigned char)

// Copies all faces of an array into a packed buffer, or back, in one launch: y of the block is the face. A
// run of threads as long as a row, or as a block of threads, moves a tile of a row, a word each.
template <class Word>
__device__ void copy_faces(char* array, char* packed, const face_list& faces, int unpack) {
  const face& f = faces.of[blockIdx.y];
  const unsigned long long words = f.block_bytes / sizeof(Word);
  unsigned lanes = 1;
  while (lanes < words && lanes < blockDim.x) lanes *= 2;
  unsigned long long tiles_a_row = (words + lanes - 1) / lanes, rows = 1;
  for (unsigned d = 0; d < f.dims; ++d) rows *= f.count[d];
  const unsigned lane = threadIdx.x % lanes, groups = blockDim.x / lanes;
  const unsigned long long step = (unsigned long long)gridDim.x * groups;
  unsigned long long tile = (unsigned long long)blockIdx.x * groups + threadIdx.x / lanes;
  for (; tile < rows * tiles_a_row; tile += step) {
    unsigned long long row = tiles_a_row == 1 ? tile : tile / tiles_a_row;
    const unsigned long long word = (tile - row * tiles_a_row) * lanes + lane;
    if (word >= words) continue;
    Word* outside = reinterpret_cast<Word*>(packed + f.packed + row * f.block_bytes) + word;
    unsigned long long at = f.offset;
    for (int d = (int)f.dims - 1; d > 0; --d) {
      at += row % f.count[d] * f.stride[d];
      row /= f.count[d];
    }
    at += f.dims ? row * f.stride[0] : 0;
    Word* inside = reinterpret_cast<Word*>(array + at) + word;
    if (unpack)
      *inside = *outside;
    else
      *outside = *inside;
  }
}

#define COPY_FACES(name, Word)                                                              \
  extern "C" __global__ void name(void* array, void* packed, face_list faces, int unpack) { \
    copy_faces<Word>(static_cast<char*>(array), static_cast<char*>(packed), faces, unpack); \
  }

COPY_FACES(copy_faces_16, uint4)
COPY_FACES(copy_faces_8, unsigned long long)
COPY_FACES(copy_faces_4, unsigned int)
COPY_FACES(copy_faces_1, unsigned char)
