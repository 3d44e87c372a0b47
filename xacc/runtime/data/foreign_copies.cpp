// Registers copies on the GPU that another OpenACC compiler's run-time library made.
#include "peerway/xacc/outside.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"

extern "C" {

void* pwx_memory(const pwx_array* a) { return a->state == nullptr ? nullptr : a->state->memory.address(); }

size_t pwx_memory_bytes(const pwx_array* a) { return a->state == nullptr ? 0 : a->state->bytes; }

int pwx_outside(const pwx_array* a, void* device, const pwx_where* where) {
  return pwx::guarded(where, [&] {
    const void* const memory = pwx::allocated(*a, "a directive with acc").memory.address();
    if (device == memory) return 0;
    if (device == nullptr)
      pwx::refuse(a->name, " is not present on the device; add it to a data construct or enter data before");
    if (pwx::gpu() == nullptr)
      pwx::refuse(a->name, " has a copy on a device, but this process has no GPU that Peerway can use; ",
                  "`peerway doctor` says why");
    pwx::present_outside(*a, device);
    return static_cast<int>(PWX_REFLECT_ACC);
  });
}

}  // extern "C"
