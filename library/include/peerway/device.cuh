// Peerway inside kernels: header only, for nvcc and NVRTC, hipcc and HIPRTC. Functions of peerway.h make the
// handles, which are passed to kernels by value; Peerway has no device state of its own.
//
//   using namespace peerway::device;
//   __global__ void step(pw_plan_handle halo, ...) {
//     start(Block{}, halo, blockIdx.x, gridDim.x);
//     ...                                                          // work that needs no halo
//     if (finish(Block{}, halo, blockIdx.x, gridDim.x) != Result::ok) return;   // cancelled, or a timeout
//
// scope.cuh: which threads work together   result.cuh: how an operation ended
// signal.cuh: put, notify, wait, send, receive   plan.cuh: start, finish
// all_reduce.cuh: all_reduce                   fifo.cuh: puts that the proxy carries out
#ifndef PEERWAY_DEVICE_CUH
#define PEERWAY_DEVICE_CUH

#include "peerway/device/all_reduce.cuh"
#include "peerway/device/fifo.cuh"
#include "peerway/device/plan.cuh"
#include "peerway/device/signal.cuh"

#endif
