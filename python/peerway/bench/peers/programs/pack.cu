// Packs and unpacks a face on the GPU the way a careful CUDA programmer would: the widest word that sizes and
// addresses allow, neighbouring threads on neighbouring bytes, no division in the inner loop. Compiled by
// nvcc or NVRTC.

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
