// Memory for private and firstprivate copies of what a pointer points to.
#include <cstdlib>
#include <cstring>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/gpu.h"

extern "C" {

void* pwx_own(const void* from, size_t first, size_t bytes, const pwx_where* where) {
  return pwx::guarded(where, [&] {
    void* own = std::malloc(bytes > 0 ? bytes : 1);
    if (own == nullptr) pwx::refuse("no memory for a private copy of ", bytes, " bytes");
    if (from != nullptr && bytes > first)
      std::memcpy(static_cast<char*>(own) + first, static_cast<const char*>(from) + first, bytes - first);
    return own;
  });
}
void pwx_own_end(void* own) { std::free(*static_cast<void**>(own)); }

void* pwx_scratch(size_t bytes, const pwx_where* where) {
  return pwx::guarded(where, [&] {
    const pwx::Gpu& gpu = pwx::the_gpu();
    pw::cuda::CUdeviceptr address = 0;
    const int status = gpu.driver.cuMemAlloc(&address, bytes > 0 ? bytes : 1);
    if (status != pw::cuda::CUDA_SUCCESS)
      pwx::refuse("no memory on the GPU for ", bytes, " bytes of private copies; make the sections smaller");
    return reinterpret_cast<void*>(address);
  });
}
void pwx_scratch_end(void* scratch, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (queue == PWX_QUEUE_SYNC)
      pwx::wait_for_unqueued();
    else
      pwx::wait_for(queue);
    const pwx::Gpu& gpu = pwx::the_gpu();
    gpu.check(gpu.driver.cuMemFree(reinterpret_cast<pw::cuda::CUdeviceptr>(scratch)),
              "freeing private copies");
  });
}

}  // extern "C"
