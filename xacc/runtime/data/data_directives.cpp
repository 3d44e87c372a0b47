// The data directives and clauses of OpenACC.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/mapping/rows.h"

namespace pwx {

/// The host memory that a clause names.
struct Named {
  void* address;
  uint64_t bytes;
};

namespace {

constexpr uintptr_t kAligned = 16;  // bytes; equal to the alignment of PWX_ALIGNED in kernels

Named named(const pwx_data& data) {
  if (data.array == nullptr) return {data.address, data.bytes};
  const pwx_array_state& state = allocated(*data.array, "a data clause");
  return {state.memory.address(), state.bytes};
}

Present* present_of(const pwx_data& data) {
  const Named memory = named(data);
  return find_present(memory.address, memory.bytes, data.name);
}

bool copies_in(const pwx_data& data) { return data.kind == PWX_DATA_COPY || data.kind == PWX_DATA_COPYIN; }
bool copies_out(const pwx_data& data) {
  return data.kind == PWX_DATA_COPY || data.kind == PWX_DATA_COPYOUT || data.kind == PWX_DATA_COPYOUT_ZERO;
}
bool begins_zero(const pwx_data& data) {
  return data.kind == PWX_DATA_COPYOUT_ZERO || data.kind == PWX_DATA_CREATE_ZERO;
}

[[noreturn]] void refuse_absent(const pwx_data& data, const char* where) {
  refuse(data.name, " is not present on the GPU", where,
         "; copy or create it by a data construct or enter data before");
}

/// The entry for a clause, made if there is none. Null for a no_create of memory that is not present, and for
/// a null address.
Present* entry_for(const pwx_data& data, long queue) {
  if (data.array == nullptr && data.address == nullptr) return nullptr;
  Present* entry = present_of(data);
  if (entry != nullptr || data.kind == PWX_DATA_NO_CREATE) return entry;
  if (data.kind == PWX_DATA_PRESENT) refuse_absent(data, "");
  entry = &make_present(data);
  if (copies_in(data)) copy_to_device(*entry, entry->host, entry->bytes, queue);
  if (begins_zero(data)) clear_on_device(*entry, queue);
  return entry;
}

void release_entry(Present* entry, bool copy_out, long queue) {
  if (entry == nullptr || entry->structured > 0 || entry->dynamic > 0) return;
  if (copy_out) copy_to_host(*entry, entry->host, entry->bytes, queue);
  if (queue != PWX_QUEUE_SYNC) wait_for(queue);  // before the memory is freed
  remove_present(*entry);
}

}  // namespace
}  // namespace pwx

/// The entry that each clause of a construct uses, and the memory that it named at the last call.
struct pwx_data_region_state {
  std::vector<pwx::Named> named;
  std::vector<pwx::Present*> entries;
};

namespace pwx {
namespace {

std::vector<std::unique_ptr<pwx_data_region_state>>& regions() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_data_region_state>>;  // outlives atexit
  return all;
}

/// Whether everything that a construct names is where it was at the construct's last call.
bool is_unchanged(const pwx_data_region& region, int count, const pwx_data* data) {
  if (region.state == nullptr || region.generation != pwx_generation ||
      region.state->named.size() != static_cast<size_t>(count))  // the number of rows may have changed
    return false;
  for (int i = 0; i < count; ++i) {
    const Named& before = region.state->named[static_cast<size_t>(i)];
    if (data[i].array != nullptr
            ? data[i].array->state == nullptr || data[i].array->state->memory.address() != before.address
            : data[i].address != before.address || data[i].bytes != before.bytes)
      return false;
  }
  return true;
}

void begin(pwx_data_region& region, int count, const pwx_data* data, long queue) {
  if (!is_unchanged(region, count, data)) {
    if (region.state == nullptr)
      region.state = regions().emplace_back(std::make_unique<pwx_data_region_state>()).get();
    region.state->named.clear();
    region.state->entries.clear();
    for (int i = 0; i < count; ++i) {
      Present* const entry = entry_for(data[i], queue);
      if (entry != nullptr) ++entry->structured;  // at once, since a later clause may name it, too
      region.state->named.push_back(named(data[i]));
      region.state->entries.push_back(entry);
    }
    region.generation = pwx_generation;
    return;
  }
  for (Present* entry : region.state->entries)
    if (entry != nullptr) ++entry->structured;
}

void end(pwx_data_region& region, int count, const pwx_data* data, long queue) {
  const bool known = is_unchanged(region, count, data);
  for (int i = 0; i < count; ++i) {
    Present* const entry = known ? region.state->entries[static_cast<size_t>(i)] : present_of(data[i]);
    if (entry == nullptr || entry->structured == 0) continue;
    --entry->structured;
    release_entry(entry, copies_out(data[i]), queue);
  }
}

void enter(const pwx_data& data, long queue) {
  Present* const entry = entry_for(data, queue);
  if (entry != nullptr) ++entry->dynamic;
}

void exit(const pwx_data& data, bool finalize, long queue) {
  if (data.array == nullptr && data.address == nullptr) return;
  Present* const entry = present_of(data);
  if (entry == nullptr) refuse_absent(data, ", and exit data ends what enter data began");
  entry->dynamic = finalize || entry->dynamic == 0 ? 0 : entry->dynamic - 1;
  release_entry(entry, copies_out(data), queue);
}

/// The ranges that are present if host and device memory are the same; empty unless the program has clauses
/// with zero.
std::vector<Named>& on_host() {
  static auto& all = *new std::vector<Named>;  // outlives atexit
  return all;
}
bool zero_is_used = false;

bool is_nothing(const pwx_data& data) {
  return data.array != nullptr ? data.array->state == nullptr : data.address == nullptr;
}

void begin_on_host(int count, const pwx_data* data) {
  for (int i = 0; i < count && zero_is_used; ++i) {
    if (is_nothing(data[i])) continue;
    const Named memory = named(data[i]);
    const auto* const first = static_cast<const std::byte*>(memory.address);
    const auto holds = [&](const Named& other) {
      const auto* const begin = static_cast<const std::byte*>(other.address);
      return begin <= first && first + memory.bytes <= begin + other.bytes;
    };
    if (begins_zero(data[i]) && std::ranges::none_of(on_host(), holds))
      std::memset(memory.address, 0, memory.bytes);
    on_host().push_back(memory);
  }
}

void end_on_host(int count, const pwx_data* data, bool all) {
  for (int i = 0; i < count; ++i) {
    if (is_nothing(data[i])) continue;
    const Named memory = named(data[i]);
    const auto is_it = [&](const Named& other) { return other.address == memory.address; };
    if (all) std::erase_if(on_host(), is_it);
    const auto last = std::find_if(on_host().rbegin(), on_host().rend(), is_it);
    if (last != on_host().rend()) on_host().erase(std::next(last).base());
  }
}

using CopyPart = void (*)(const Present& entry, void* address, uint64_t bytes, long queue);

void update(const pwx_data& data, bool if_present, long queue, CopyPart copy) {
  const Present* const entry = present_of(data);
  if (entry == nullptr && !if_present) refuse_absent(data, ", and update copies what is");
  if (entry == nullptr) return;
  const Named part = named(data);
  copy(*entry, part.address, part.bytes == 0 ? entry->bytes : part.bytes, queue);
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

void pwx_data_zero(void) { pwx::zero_is_used = true; }

void pwx_data_begin(pwx_data_region* region, int count, const pwx_data* data, long queue,
                    const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() != nullptr)
      pwx::begin(*region, count, data, queue);
    else
      pwx::begin_on_host(count, data);
  });
}

void pwx_data_end(pwx_data_region* region, int count, const pwx_data* data, long queue,
                  const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() != nullptr)
      pwx::end(*region, count, data, queue);
    else
      pwx::end_on_host(count, data, false);
  });
}

void pwx_enter_data(int count, const pwx_data* data, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx::begin_on_host(count, data);
    for (int i = 0; i < count; ++i) pwx::enter(data[i], queue);
  });
}

void pwx_exit_data(int count, const pwx_data* data, int finalize, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx::end_on_host(count, data, finalize != 0);
    for (int i = 0; i < count; ++i) pwx::exit(data[i], finalize != 0, queue);
  });
}

void pwx_update_host(int count, const pwx_data* data, int if_present, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    for (int i = 0; i < count && pwx::gpu() != nullptr; ++i)
      pwx::update(data[i], if_present != 0, queue, pwx::copy_to_host);
  });
}

void pwx_update_device(int count, const pwx_data* data, int if_present, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    for (int i = 0; i < count && pwx::gpu() != nullptr; ++i)
      pwx::update(data[i], if_present != 0, queue,
                  [](const pwx::Present& entry, void* address, uint64_t bytes, long on) {
                    copy_to_device(entry, address, bytes, on);
                  });
  });
}

void pwx_update_part(int to_device, const pwx_section* part, const char* name, int if_present, long queue,
                     const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() != nullptr) pwx::update(*part, name, to_device != 0, if_present != 0, queue);
  });
}

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
    if (reinterpret_cast<uintptr_t>(entry->device) % pwx::kAligned != 0)
      pwx::refuse(a->name, " was mapped to an address on the GPU that is no multiple of ", pwx::kAligned,
                  " bytes; map it to memory of acc_malloc");
    *known = {a->state, entry->device + (static_cast<const std::byte*>(a->memory) - entry->host),
              pwx_generation};
    return known->device;
  });
}

}  // extern "C"
