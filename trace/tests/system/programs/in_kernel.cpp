// A kernel of the program that starts and finishes a plan, compiled for the CPU: with the driver's double,
// the memory of the GPU is the CPU's.
#include "peerway/device.cuh"

extern "C" int run(const pw_plan_handle* plan) {
  using peerway::device::Result;
  const peerway::device::Thread thread;
  const bool whole = peerway::device::start(thread, *plan) == Result::ok &&
                     peerway::device::finish(thread, *plan) == Result::ok;
  return whole ? 0 : 1;
}
