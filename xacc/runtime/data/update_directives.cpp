// The directive update of OpenACC, of whole variables and of sections.
#include <cstddef>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/clause_memory.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/small_copies.h"
#include "xacc/runtime/mapping/rows.h"

namespace pwx {
namespace {

/// Calls `copy(entry, address, bytes)` for what a clause names, if it is present.
template <typename Copy>
void update(const pwx_data& data, bool if_present, const Copy& copy) {
  const Present* const entry = present_of(data);
  if (entry == nullptr && !if_present) refuse_absent(data, ", and update copies what is");
  if (entry == nullptr) return;
  const HostMemory part = host_memory(data);
  copy(*entry, part.address, part.bytes == 0 ? entry->bytes : part.bytes);
}

void update_host(int count, const pwx_data* data, bool if_present, long queue) {
  SmallCopies small;
  for (int i = 0; i < count; ++i)
    update(data[i], if_present, [&](const Present& entry, void* address, uint64_t bytes) {
      if (queue == PWX_QUEUE_SYNC && bytes <= kSmallCopy)
        small.to_host(address, address_on_gpu(entry, address), bytes);
      else
        copy_to_host(entry, address, bytes, queue);
    });
  small.finish();
}

void update_device(int count, const pwx_data* data, bool if_present, long queue) {
  for (int i = 0; i < count; ++i)
    update(data[i], if_present, [&](const Present& entry, const void* address, uint64_t bytes) {
      copy_to_device(entry, address, bytes, queue);
    });
}

void update(const pwx_section& part, const char* name, bool to_device, bool if_present, long queue) {
  const std::vector<Row> rows = rows_of(part, name);
  std::byte* base = static_cast<std::byte*>(part.base);
  if (part.array != nullptr)
    base = static_cast<std::byte*>(allocated(*part.array, "update").memory.address());
  if (part.array == nullptr && rows.empty()) return;
  const Present* const entry =
      part.array != nullptr
          ? find_present(*part.array)
          : find_present(base + rows.front().offset,
                         rows.back().offset + rows.back().bytes - rows.front().offset, name);
  if (entry == nullptr && !if_present)
    refuse_absent({PWX_DATA_PRESENT, name, nullptr, nullptr, 0}, ", and update copies what is");
  if (entry != nullptr) copy_rows(*entry, base, rows, to_device, queue);
}

}  // namespace
}  // namespace pwx

extern "C" {

void pwx_update_host(int count, const pwx_data* data, int if_present, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() != nullptr) pwx::update_host(count, data, if_present != 0, queue);
  });
}

void pwx_update_device(int count, const pwx_data* data, int if_present, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() != nullptr) pwx::update_device(count, data, if_present != 0, queue);
  });
}

void pwx_update_part(int to_device, const pwx_section* part, const char* name, int if_present, long queue,
                     const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() != nullptr) pwx::update(*part, name, to_device != 0, if_present != 0, queue);
  });
}

}  // extern "C"
