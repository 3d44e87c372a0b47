// reduction and bcast with acc: of values on the GPU. They go through host memory.
#include <cstddef>
#include <vector>

#include "xacc/failure.h"
#include "xacc/gpu.h"
#include "xacc/operators.h"

namespace pwx {
namespace {

using namespace pw::cuda;

/// Calls `body` with a copy of the values in host memory, and stores what that has then.
template <typename Body>
void through_host(void* device, size_t bytes, Body&& body) {
  const Gpu& gpu = the_gpu();
  thread_local std::vector<std::byte> values;
  if (values.size() < bytes) values.resize(bytes);
  const auto copy = [&](const void* to, const void* from) {
    gpu.check(gpu.driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                       bytes, stream_of(PWX_QUEUE_SYNC)),
              "a copy of the values");
    wait_for(PWX_QUEUE_SYNC);
  };
  copy(values.data(), device);
  body(values.data());
  copy(device, values.data());
}

}  // namespace
}  // namespace pwx

extern "C" {

void pwx_reduce_device(const pwx_ref* on, pwx_op op, pwx_type type, void* device, size_t count,
                       const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_reduce(on, op, type, device, count, where);
    pwx::through_host(device, count * pwx::size_of(type),
                      [&](void* values) { pwx_reduce(on, op, type, values, count, where); });
  });
}

void pwx_bcast_device(const pwx_ref* on, const pwx_ref* from, void* device, size_t bytes,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_bcast(on, from, device, bytes, where);
    pwx::through_host(device, bytes, [&](void* values) { pwx_bcast(on, from, values, bytes, where); });
  });
}

}  // extern "C"
