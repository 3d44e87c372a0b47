// What a kernel needs when it begins: the end of the work before it, and its parameters where they are.
#pragma once

#include "peerway/device/memory.cuh"
#include "peerway/device/step.cuh"

namespace pw::cuda {

// The GPU may start a launch while the previous work ends
// (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION); this waits until that work has ended.
struct InOrder {
  __device__ void operator()() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
  }
};

// Whether the kernel is to run. Only with a condition does this wait for the work before, which may write the
// word.
__device__ inline bool is_met(const peerway::device::Condition& condition) {
  if (condition.word != nullptr) InOrder()();
  return condition.is_met();
}

// Returns the parameter of a kernel that has one. Compilers for AMD GPUs copy parameters that are indexed at
// run time to each thread's own memory, so this takes them from where they were passed.
template <class Arguments>
__device__ inline const Arguments& in_place(const Arguments& parameter) {
#if defined(PW_ON_AMD)
  static_cast<void>(parameter);
  return *(const Arguments*)__builtin_amdgcn_kernarg_segment_ptr();
#else
  return parameter;
#endif
}

}  // namespace pw::cuda
