// Data constructs, enter data and exit data of OpenACC on a GPU: copies begin and end, and each counts who
// needs it.
#include <memory>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/clause_memory.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"

namespace pwx {
namespace {

bool copies_in(const pwx_data& data) { return data.kind == PWX_DATA_COPY || data.kind == PWX_DATA_COPYIN; }
bool copies_out(const pwx_data& data) {
  return data.kind == PWX_DATA_COPY || data.kind == PWX_DATA_COPYOUT || data.kind == PWX_DATA_COPYOUT_ZERO;
}

/// The entry for a clause, made if there is none. Null for a no_create of memory that is not present, and for
/// a null address.
Present* entry_for(const pwx_data& data, const CommonAllocation& common, long queue) {
  if (data.array == nullptr && data.address == nullptr) return nullptr;
  Present* entry = present_of(data);
  if (entry != nullptr || data.kind == PWX_DATA_NO_CREATE) return entry;
  if (data.kind == PWX_DATA_PRESENT) refuse_absent(data, "");
  entry = &make_present(data, common);
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
  std::vector<pwx::HostMemory> memory;
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
      region.state->memory.size() != static_cast<size_t>(count))  // the number of rows may have changed
    return false;
  for (int i = 0; i < count; ++i) {
    const HostMemory& before = region.state->memory[static_cast<size_t>(i)];
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
    region.state->memory.clear();
    region.state->entries.clear();
    const CommonAllocation common(count, data);
    for (int i = 0; i < count; ++i) {
      Present* const entry = entry_for(data[i], common, queue);
      if (entry != nullptr) ++entry->structured;  // at once, since a later clause may name it, too
      region.state->memory.push_back(host_memory(data[i]));
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

void enter(const pwx_data& data, const CommonAllocation& common, long queue) {
  Present* const entry = entry_for(data, common, queue);
  if (entry != nullptr) ++entry->dynamic;
}

void exit(const pwx_data& data, bool finalize, long queue) {
  if (data.array == nullptr && data.address == nullptr) return;
  Present* const entry = present_of(data);
  if (entry == nullptr) refuse_absent(data, ", and exit data ends what enter data began");
  entry->dynamic = finalize || entry->dynamic == 0 ? 0 : entry->dynamic - 1;
  release_entry(entry, copies_out(data), queue);
}

}  // namespace
}  // namespace pwx

extern "C" {

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
    const pwx::CommonAllocation common(count, data);
    for (int i = 0; i < count; ++i) pwx::enter(data[i], common, queue);
  });
}

void pwx_exit_data(int count, const pwx_data* data, int finalize, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx::end_on_host(count, data, finalize != 0);
    for (int i = 0; i < count; ++i) pwx::exit(data[i], finalize != 0, queue);
  });
}

}  // extern "C"
