#include "xacc/runtime/data/present.h"

#include <map>
#include <optional>
#include <utility>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/coarray_memory.h"
#include "xacc/runtime/data/key_table.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/sequences.h"
#include "xacc/runtime/program/program.h"

uint64_t pwx_generation = 1;

namespace pwx {
namespace {

using namespace pw::cuda;

/// All copies, by the first host address.
std::map<const std::byte*, Present>& table() {
  static auto& all = *new std::map<const std::byte*, Present>;  // outlives atexit
  return all;
}

/// The entry that begins at or before the address, or null.
Present* before(const std::byte* address) {
  const auto after = table().upper_bound(address);
  return after == table().begin() ? nullptr : &std::prev(after)->second;
}

std::byte* bytes_of(const void* address) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(address));
}

CUdeviceptr device_pointer(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

constexpr const char *kToDevice = "a copy to the memory", *kToHost = "a copy from the memory";

void start_copy(void* to, const void* from, uint64_t bytes, long queue, const char* action) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemcpyAsync(device_pointer(to), device_pointer(from), bytes, stream_of(queue)),
            action);
}

void copy(void* to, const void* from, uint64_t bytes, long queue, const char* action) {
  if (bytes == 0) return;
  start_copy(to, from, bytes, queue, action);
  if (queue == PWX_QUEUE_SYNC) wait_for(queue);
}

/// Adds an entry. `id` is that of a copy that is present again; 0: a new one.
Present& added(Present entry, uint64_t id = 0) {
  static uint64_t ids = 0;
  entry.id = id != 0 ? id : ++ids;
  ++pwx_generation;
  std::byte* const host = entry.host;
  return table().insert_or_assign(host, std::move(entry)).first->second;
}

constexpr uint64_t kMostInCommon = uint64_t{1} << 30;  // it is freed only when the last copy ends
constexpr uint64_t kAlignment = 512;

/// Whether a clause begins a copy of an array that may lie in an allocation with others. Copies of a
/// function's arrays may not, since they are kept for its next call, nor may those that other ranks find by
/// an id.
bool begins_shareable_copy(const pwx_data& data) {
  if (data.array == nullptr || data.array->state == nullptr || data.kind == PWX_DATA_PRESENT ||
      data.kind == PWX_DATA_NO_CREATE)
    return false;
  const pwx_array_state& state = *data.array->state;
  return !state.local && state.common_id.id == 0 && find_present(*data.array) == nullptr;
}

/// Gives an array's copy its memory.
void allocate_copy(Present& entry, const pwx_array& a, const CommonAllocation& common) {
  peerway::Context& context = program().context;
  const uint64_t bytes = a.state->memory.bytes();
  if (const size_t* const offset = common.offset_of(a)) {
    entry.block = common.memory();
    auto* const address = static_cast<std::byte*>(entry.block->address()) + *offset;
    entry.region.emplace(context.register_memory(address, bytes));
  } else {
    entry.region.emplace(context.allocate(the_gpu().device(), bytes));
  }
}

}  // namespace

CommonAllocation::CommonAllocation(int count, const pwx_data* data) {
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    if (!begins_shareable_copy(data[i])) continue;
    const pwx_array_state& state = *data[i].array->state;
    if (offsets_.try_emplace(&state, bytes).second)
      bytes += (state.memory.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (offsets_.size() < 2 || bytes > kMostInCommon)
    offsets_.clear();
  else
    memory_ = std::make_shared<peerway::Region>(program().context.allocate(the_gpu().device(), bytes));
}

const size_t* CommonAllocation::offset_of(const pwx_array& a) const {
  const auto place = offsets_.find(a.state);
  return place == offsets_.end() ? nullptr : &place->second;
}

Present* find_present(const void* address, uint64_t bytes, const char* name) {
  const std::byte* const first = bytes_of(address);
  Present* const entry = before(first);
  if (entry != nullptr && first + bytes <= entry->host + entry->bytes &&
      (bytes > 0 || first < entry->host + entry->bytes))
    return entry;
  const bool starts_in = entry != nullptr && first < entry->host + entry->bytes;
  const auto next = table().lower_bound(first);
  const bool reaches = bytes > 0 && next != table().end() && next->first < first + bytes;
  if (starts_in || reaches)
    refuse(name, ", of ", bytes, " bytes, is present on the GPU only in part: a range of ",
           starts_in ? entry->bytes : next->second.bytes, " bytes begins ",
           starts_in ? "at or before its first byte" : "inside it",
           "; name the same section everywhere, or one within another");
  return nullptr;
}

Present* find_present(const pwx_array& a) {
  if (a.state == nullptr) refuse(a.name == nullptr ? "an array" : a.name, " is not allocated");
  return find_present(a.state->memory.address(), a.state->bytes, a.name);
}

Present& present(const pwx_array& a, const char* action) {
  Present* const entry = find_present(a);
  if (entry == nullptr)
    refuse(action, " with acc of ", a.name,
           ", which is not present on the GPU; add it to a data construct or enter data before");
  return *entry;
}

void* host_of(const void* device) {
  const std::byte* const at = bytes_of(device);
  for (const auto& [host, entry] : table())
    if (entry.device <= at && at < entry.device + entry.bytes) return entry.host + (at - entry.device);
  return nullptr;
}

OnGpu region_on_gpu(const void* device) {
  const std::byte* const at = bytes_of(device);
  for (auto& [host, entry] : table()) {
    if (at < entry.device || at >= entry.device + entry.bytes) continue;
    const auto offset = static_cast<size_t>(at - entry.device);
    if (entry.coarray) {
      size_t first = 0;
      peerway::Region* const region = coarray_on_gpu(entry.host, entry.bytes, first);
      return {region, first + offset};
    }
    if (entry.region) return {&*entry.region, offset};
    if (!entry.reached) entry.reached.emplace(program().context.register_memory(entry.device, entry.bytes));
    return {&*entry.reached, offset};
  }
  refuse("a transfer of a coarray with memory that is not present on the GPU");
}

Present& make_present(const pwx_data& data, const CommonAllocation& common) {
  const Gpu& gpu = the_gpu();
  if (data.array != nullptr) {
    pwx_array_state& state = *data.array->state;
    Present entry{static_cast<std::byte*>(state.memory.address()), state.bytes, nullptr};
    entry.region = std::exchange(state.spare.region, std::nullopt);
    const uint64_t id = entry.region ? state.spare.id : 0;
    if (!entry.region) allocate_copy(entry, *data.array, common);
    entry.device = static_cast<std::byte*>(entry.region->address());
    if (state.common_id.id != 0) publish(entry.published = state.common_id.on_gpus(), *entry.region);
    state.reflected[1] = {};
    return added(std::move(entry), id);
  }
  if (data.bytes == 0) refuse("the size of ", data.name, " is not known here; give a section, as [0:n]");
  size_t offset = 0;
  if (peerway::Region* const shared = coarray_on_gpu(data.address, data.bytes, offset)) {
    Present entry{bytes_of(data.address), data.bytes, static_cast<std::byte*>(shared->address()) + offset};
    entry.coarray = true;
    return added(std::move(entry));
  }
  CUdeviceptr address = 0;
  const int status = gpu.driver.cuMemAlloc(&address, data.bytes);
  if (status == CUDA_ERROR_OUT_OF_MEMORY)
    refuse(gpu.name(), " has no ", data.bytes, " bytes left for ", data.name);
  gpu.check(status, "memory");
  return added({bytes_of(data.address), data.bytes, reinterpret_cast<std::byte*>(address)});
}

void map_present(void* host, void* device, uint64_t bytes) {
  if (find_present(host, bytes, "acc_map_data") != nullptr) refuse("acc_map_data of memory that is present");
  Present entry{bytes_of(host), bytes, static_cast<std::byte*>(device)};
  entry.dynamic = 1;
  entry.mapped = true;
  added(std::move(entry));
}

void present_outside(const pwx_array& a, void* device) {
  Present* const known = find_present(a);
  if (known != nullptr && known->device == device) return;
  if (known != nullptr) remove_present(*known);
  Present entry{static_cast<std::byte*>(a.state->memory.address()), a.state->bytes,
                static_cast<std::byte*>(device)};
  entry.dynamic = 1;
  entry.outside = true;
  entry.region.emplace(program().context.register_memory(device, a.state->bytes));
  added(std::move(entry));
}

void remove_present(Present& entry) {
  launch_recorded();  // the recorded launches may use it
  const Gpu& gpu = the_gpu();
  withdraw(entry.published);
  pwx_array_state* const array = entry.region && !entry.outside ? array_at(entry.host) : nullptr;
  if (array != nullptr && array->local) {
    wait_for_all();
    // the array's next copy uses it again, with the plans for it
    array->spare = {std::move(entry.region), entry.id};
  } else if (entry.region || entry.coarray) {
    wait_for_all();
    tell_array_users(&ArrayUser::copy_freed, entry.id);
  } else {
    if (entry.reached) {
      wait_for_all();
      tell_array_users(&ArrayUser::copy_freed, entry.id);
      entry.reached.reset();
    }
    if (!entry.mapped)
      gpu.check(gpu.driver.cuMemFree(device_pointer(entry.device)), "freeing memory");  // waits for the GPU
  }
  ++pwx_generation;
  table().erase(entry.host);
}

void clear_on_device(const Present& entry, long queue) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemsetD8Async(device_pointer(entry.device), 0, entry.bytes, stream_of(queue)),
            "clearing memory");
  if (queue == PWX_QUEUE_SYNC) wait_for(queue);
}

void copy_to_device(const Present& entry, const void* address, uint64_t bytes, long queue) {
  copy(entry.device + (bytes_of(address) - entry.host), address, bytes, queue, kToDevice);
}

void copy_to_host(const Present& entry, void* address, uint64_t bytes, long queue) {
  copy(address, entry.device + (bytes_of(address) - entry.host), bytes, queue, kToHost);
}

void copy_rows(const Present& entry, std::byte* base, const std::vector<Row>& rows, bool to_device,
               long queue) {
  for (const Row& row : rows) {
    std::byte* const host = base + row.offset;
    std::byte* const device = entry.device + (host - entry.host);
    start_copy(to_device ? device : host, to_device ? host : device, row.bytes, queue,
               to_device ? kToDevice : kToHost);
  }
  if (queue == PWX_QUEUE_SYNC && !rows.empty()) wait_for(queue);
}

void forget_present(const void* address) {
  if (table().empty()) return;
  const auto entry = table().find(bytes_of(address));
  if (entry != table().end()) remove_present(entry->second);
}

void free_present() {
  while (!table().empty()) remove_present(table().begin()->second);
}

}  // namespace pwx
