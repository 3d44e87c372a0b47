// Rows behind pointers: each is a separate piece of memory on the device, and the device's copy of the
// pointers points to these pieces.
#include <vector>

#include "peerway/xacc/openacc.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"

namespace {

std::byte* row_of(void* const* table, long i, size_t offset) {
  auto* const row = static_cast<std::byte*>(table[i]);
  return row == nullptr ? nullptr : row + offset;
}

void* on_device(std::byte* row, size_t offset, const char* name) {
  const pwx::Present* const copy = row == nullptr ? nullptr : pwx::find_present(row, 0, name);
  if (copy == nullptr) return nullptr;
  return reinterpret_cast<void*>(copy->device + static_cast<uint64_t>(row - copy->host) - offset);
}

}  // namespace

extern "C" {

void pwx_rows(pwx_data* data, long count, pwx_data_kind kind, const char* name, void* table, size_t offset,
              size_t bytes) {
  for (long i = 0; i < count; ++i)
    data[i] = {kind, name, nullptr, row_of(static_cast<void* const*>(table), i, offset), bytes};
}

void pwx_rows_attach(const char* name, void* table, long count, size_t offset, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr || count <= 0) return;
    auto* const pointers = static_cast<void**>(table);
    const auto bytes = static_cast<size_t>(count) * sizeof(void*);
    const pwx::Present* const copy = pwx::find_present(pointers, bytes, name);
    if (copy == nullptr) return;  // a no_create
    std::vector<void*> there;
    for (long i = 0; i < count; ++i) there.push_back(on_device(row_of(pointers, i, offset), offset, name));
    const auto shift = static_cast<uint64_t>(reinterpret_cast<std::byte*>(pointers) - copy->host);
    acc_memcpy_to_device(reinterpret_cast<void*>(copy->device + shift), there.data(), bytes);
  });
}

}  // extern "C"
