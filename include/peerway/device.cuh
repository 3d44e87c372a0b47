// Peerway from inside a kernel: header only, for nvcc and NVRTC. Handles come from the functions of peerway.h
// and are passed to kernels by value; there is no device state of Peerway's own.
//
//   using namespace peerway::device;
//   __global__ void step(pw_plan_handle halo, ...) {
//     start(Block{}, halo, blockIdx.x, gridDim.x);
//     ...                                                          // what needs no halo
//     if (finish(Block{}, halo, blockIdx.x, gridDim.x) != Result::ok) return;   // cancelled, or a timeout
//
// scope.cuh: who does it together   result.cuh: how it ended   signal.cuh: put, raise, wait, send, receive
// plan.cuh: start, finish   fifo.cuh: puts that the proxy does
#ifndef PEERWAY_DEVICE_CUH
#define PEERWAY_DEVICE_CUH

#include "peerway/device/fifo.cuh"
#include "peerway/device/plan.cuh"
#include "peerway/device/signal.cuh"

#endif
