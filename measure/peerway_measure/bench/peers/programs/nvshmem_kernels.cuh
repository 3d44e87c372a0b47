// NVSHMEM from inside kernels: both sides stay in one kernel for all samples, so nothing but the network is
// between two messages. Large messages are cut into one chunk a block, each with its own notification of the
// signal.
#ifndef PEERS_NVSHMEM_KERNELS_H
#define PEERS_NVSHMEM_KERNELS_H

#include <nvshmem.h>
#include <nvshmemx.h>

#include "case.h"

struct job {
  char *source, *target;
  uint64_t* signal;   // notified by the other PE: once a block and message
  uint64_t notified;  // its value before the kernel
  shape form;
  int peer;
  long window;
};

// The part of `whole` that this block moves, in steps of `step`; empty for blocks beyond the end.
__device__ inline void my_part(size_t whole, size_t step, size_t* first, size_t* count) {
  size_t each = (whole + gridDim.x - 1) / gridDim.x;
  each = (each + step - 1) / step * step;
  *first = blockIdx.x * each < whole ? blockIdx.x * each : whole;
  *count = *first + each < whole ? each : whole - *first;
}

__device__ inline void put_rows(const job& j) {
  size_t first, rows;
  my_part(j.form.blocks, 1, &first, &rows);
  if (j.form.block_bytes == sizeof(double)) {
    auto* to = reinterpret_cast<double*>(j.target + first * j.form.pitch);
    auto* from = reinterpret_cast<const double*>(j.source + first * j.form.pitch);
    auto pitch = static_cast<ptrdiff_t>(j.form.pitch / sizeof(double));
    if (rows) nvshmemx_double_iput_block(to, from, pitch, pitch, rows, j.peer);
  } else {
    for (size_t row = first + threadIdx.x / warpSize; row < first + rows; row += blockDim.x / warpSize)
      nvshmemx_putmem_nbi_warp(j.target + row * j.form.pitch, j.source + row * j.form.pitch,
                               j.form.block_bytes, j.peer);
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    nvshmem_fence();
    nvshmemx_signal_op(j.signal, 1, NVSHMEM_SIGNAL_ADD, j.peer);
  }
}

__device__ inline void put_message(const job& j) {
  size_t bytes = j.form.blocks * j.form.block_bytes, first, count;
  if (j.form.blocks > 1 && j.form.pitch != j.form.block_bytes) {
    put_rows(j);
    return;
  }
  my_part(bytes, 16, &first, &count);
  if (count)
    nvshmemx_putmem_signal_nbi_block(j.target + first, j.source + first, count, j.signal, 1,
                                     NVSHMEM_SIGNAL_ADD, j.peer);
  else if (threadIdx.x == 0)
    nvshmemx_signal_op(j.signal, 1, NVSHMEM_SIGNAL_ADD, j.peer);
}

// Returns in all threads once all blocks of the other PE have notified for message number `message`.
__device__ inline void wait_message(const job& j, long message) {
  uint64_t wanted = j.notified + static_cast<uint64_t>(message + 1) * gridDim.x;
  if (threadIdx.x == 0) nvshmem_signal_wait_until(j.signal, NVSHMEM_CMP_GE, wanted);
  __syncthreads();
}

// clocks[i]: cycles of round trip i.
__global__ void ping_pong_kernel(job j, bool first, long n, long long* clocks) {
  for (long i = 0; i < n; ++i) {
    long long start = clock64();
    if (first) put_message(j);
    wait_message(j, i);
    if (!first) put_message(j);
    if (blockIdx.x == 0 && threadIdx.x == 0) clocks[i] = clock64() - start;
  }
}

// One thread a side: the word itself is the message. Sends word, word + 1, ... and waits for a change from
// `seen`.
__global__ void signal_kernel(job j, bool first, uint64_t word, uint64_t seen, long n, long long* clocks) {
  auto* mine = reinterpret_cast<uint64_t*>(j.target);
  for (long i = 0; i < n; ++i, ++word) {
    long long start = clock64();
    if (first) nvshmemx_signal_op(mine, word, NVSHMEM_SIGNAL_SET, j.peer);
    nvshmem_signal_wait_until(mine, NVSHMEM_CMP_NE, seen);
    seen = *reinterpret_cast<volatile uint64_t*>(mine);
    if (!first) nvshmemx_signal_op(mine, word, NVSHMEM_SIGNAL_SET, j.peer);
    clocks[i] = clock64() - start;
  }
}

// clocks[i]: cycles of window i in block 0; the blocks move their chunks independently.
__global__ void windows_kernel(job j, bool gets, long n, long long* clocks) {
  size_t bytes = j.form.blocks * j.form.block_bytes, first, count;
  my_part(bytes, 16, &first, &count);
  for (long i = 0; i < n; ++i) {
    long long start = clock64();
    for (long w = 0; count && w < j.window; ++w) {
      if (gets)
        nvshmemx_getmem_nbi_block(j.target + first, j.source + first, count, j.peer);
      else
        nvshmemx_putmem_nbi_block(j.target + first, j.source + first, count, j.peer);
    }
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) clocks[i] = clock64() - start;
  }
}

#endif
