// The addresses on the GPU that kernels, host_data and communication get.
#include <cstddef>
#include <cstdint>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/clause_memory.h"
#include "xacc/runtime/gpu/gpu.h"

namespace {

constexpr uintptr_t kAligned = 16;  // bytes; as PWX_ALIGNED of kernels says

}  // namespace

extern "C" {

void* pwx_find_device(pwx_known* known, const void* host, const char* name, const pwx_where* where) {
  return pwx::guarded(where, [&]() -> void* {
    if (pwx::gpu() == nullptr) return const_cast<void*>(host);
    const pwx::Present* const entry = pwx::find_present(host, 0, name);
    if (entry == nullptr) pwx::refuse_absent({PWX_DATA_PRESENT, name, nullptr, nullptr, 0}, "");
    *known = {host, entry->device + (static_cast<const std::byte*>(host) - entry->host), pwx_generation};
    return known->device;
  });
}

void* pwx_device_or_host(const void* host, const pwx_array* a, const char* name, const pwx_where* where) {
  return pwx::guarded(where, [&]() -> void* {
    const void* const address = a == nullptr ? host : a->memory;
    if (pwx::gpu() == nullptr || address == nullptr) return const_cast<void*>(address);
    const pwx::Present* const entry = a == nullptr ? pwx::find_present(host, 0, name) : pwx::find_present(*a);
    if (entry == nullptr) return const_cast<void*>(address);
    return entry->device + (static_cast<const std::byte*>(address) - entry->host);
  });
}

void* pwx_find_device_array(pwx_known* known, const pwx_array* a, const pwx_where* where) {
  return pwx::guarded(where, [&]() -> void* {
    if (pwx::gpu() == nullptr) return a->memory;
    const pwx::Present* const entry = pwx::find_present(*a);
    if (entry == nullptr) pwx::refuse_absent({PWX_DATA_PRESENT, a->name, nullptr, nullptr, 0}, "");
    if (reinterpret_cast<uintptr_t>(entry->device) % kAligned != 0)
      pwx::refuse(a->name, " was mapped to an address on the GPU that is no multiple of ", kAligned,
                  " bytes; map it to memory of acc_malloc");
    *known = {a->state, entry->device + (static_cast<const std::byte*>(a->memory) - entry->host),
              pwx_generation};
    return known->device;
  });
}

}  // extern "C"
