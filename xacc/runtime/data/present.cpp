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

/// By the first address.
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

void start_copy(void* to, const void* from, uint64_t bytes, long queue, const char* what) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemcpyAsync(device_pointer(to), device_pointer(from), bytes, stream_of(queue)),
            what);
}

void copy(void* to, const void* from, uint64_t bytes, long queue, const char* what) {
  if (bytes == 0) return;
  start_copy(to, from, bytes, queue, what);
  if (queue == PWX_QUEUE_SYNC) wait_for(queue);
}

/// `id`: of a copy that is present again; 0: a new one.
Present& added(Present one, uint64_t id = 0) {
  static uint64_t ids = 0;
  one.id = id != 0 ? id : ++ids;
  ++pwx_generation;
  std::byte* const host = one.host;
  return table().insert_or_assign(host, std::move(one)).first->second;
}

}  // namespace

Present* find_present(const void* address, uint64_t bytes, const char* name) {
  const std::byte* const first = bytes_of(address);
  Present* const found = before(first);
  if (found != nullptr && first + bytes <= found->host + found->bytes &&
      (bytes > 0 || first < found->host + found->bytes))
    return found;
  const bool starts_in = found != nullptr && first < found->host + found->bytes;
  const auto next = table().lower_bound(first);
  const bool reaches = bytes > 0 && next != table().end() && next->first < first + bytes;
  if (starts_in || reaches)
    refuse(name, ", of ", bytes, " bytes, is present on the GPU only in part: a range of ",
           starts_in ? found->bytes : next->second.bytes, " bytes begins ",
           starts_in ? "at or before its first byte" : "inside it",
           "; name the same section everywhere, or one within another");
  return nullptr;
}

Present* find_present(const pwx_array& a) {
  if (a.state == nullptr) refuse(a.name == nullptr ? "an array" : a.name, " is not allocated");
  return find_present(a.state->memory.address(), a.state->bytes, a.name);
}

Present& present(const pwx_array& a, const char* what) {
  Present* const found = find_present(a);
  if (found == nullptr)
    refuse(what, " with acc of ", a.name,
           ", which is not present on the GPU; add it to a data construct or enter data before");
  return *found;
}

void* host_of(const void* device) {
  const std::byte* const at = bytes_of(device);
  for (const auto& [host, one] : table())
    if (one.device <= at && at < one.device + one.bytes) return one.host + (at - one.device);
  return nullptr;
}

OnGpu region_on_gpu(const void* device) {
  const std::byte* const at = bytes_of(device);
  for (auto& [host, one] : table()) {
    if (at < one.device || at >= one.device + one.bytes) continue;
    const auto offset = static_cast<size_t>(at - one.device);
    if (one.coarray) {
      size_t first = 0;
      peerway::Region* const region = coarray_on_gpu(one.host, one.bytes, first);
      return {region, first + offset};
    }
    if (one.region) return {&*one.region, offset};
    if (!one.reached) one.reached.emplace(program().context.register_memory(one.device, one.bytes));
    return {&*one.reached, offset};
  }
  refuse("a transfer of a coarray with memory that is not present on the GPU");
}

Present& make_present(const pwx_data& data) {
  const Gpu& gpu = the_gpu();
  if (data.array != nullptr) {
    pwx_array_state& state = *data.array->state;
    Present one{static_cast<std::byte*>(state.memory.address()), state.bytes, nullptr};
    one.region = std::exchange(state.spare.region, std::nullopt);
    const uint64_t id = one.region ? state.spare.id : 0;
    if (!one.region)
      one.region.emplace(program().context.allocate(peerway::cuda(gpu.ordinal), state.memory.bytes()));
    one.device = static_cast<std::byte*>(one.region->address());
    if (state.common_id.id != 0) publish(one.published = state.common_id.on_gpus(), *one.region);
    state.reflected[1] = {};
    return added(std::move(one), id);
  }
  if (data.bytes == 0) refuse("the size of ", data.name, " is not known here; give a section, as [0:n]");
  size_t offset = 0;
  if (peerway::Region* const shared = coarray_on_gpu(data.address, data.bytes, offset)) {
    Present one{bytes_of(data.address), data.bytes, static_cast<std::byte*>(shared->address()) + offset};
    one.coarray = true;
    return added(std::move(one));
  }
  CUdeviceptr address = 0;
  const int result = gpu.driver.cuMemAlloc(&address, data.bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    refuse("cuda:", gpu.ordinal, " has no ", data.bytes, " bytes left for ", data.name);
  gpu.check(result, "memory");
  return added({bytes_of(data.address), data.bytes, reinterpret_cast<std::byte*>(address)});
}

void map_present(void* host, void* device, uint64_t bytes) {
  if (find_present(host, bytes, "acc_map_data") != nullptr) refuse("acc_map_data of memory that is present");
  Present one{bytes_of(host), bytes, static_cast<std::byte*>(device)};
  one.dynamic = 1;
  one.mapped = true;
  added(std::move(one));
}

void present_outside(const pwx_array& a, void* device) {
  Present* const found = find_present(a);
  if (found != nullptr && found->device == device) return;
  if (found != nullptr) remove_present(*found);
  Present one{static_cast<std::byte*>(a.state->memory.address()), a.state->bytes,
              static_cast<std::byte*>(device)};
  one.dynamic = 1;
  one.outside = true;
  one.region.emplace(program().context.register_memory(device, a.state->bytes));
  added(std::move(one));
}

void remove_present(Present& one) {
  launch_recorded();  // which may use it
  const Gpu& gpu = the_gpu();
  withdraw(one.published);
  pwx_array_state* const array = one.region && !one.outside ? array_at(one.host) : nullptr;
  if (array != nullptr && array->local) {
    wait_for_all();
    array->spare = {std::move(one.region), one.id};  // the array's next copy, with the plans over it
  } else if (one.region) {
    wait_for_all();
    array_users().copy_freed(one.id);
  } else if (one.coarray) {
    wait_for_all();
  } else if (!one.mapped) {
    one.reached.reset();
    gpu.check(gpu.driver.cuMemFree(device_pointer(one.device)), "freeing memory");  // waits for the GPU
  }
  ++pwx_generation;
  table().erase(one.host);
}

void clear_on_device(const Present& one, long queue) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemsetD8Async(device_pointer(one.device), 0, one.bytes, stream_of(queue)),
            "clearing memory");
  if (queue == PWX_QUEUE_SYNC) wait_for(queue);
}

void copy_to_device(const Present& one, const void* address, uint64_t bytes, long queue) {
  copy(one.device + (bytes_of(address) - one.host), address, bytes, queue, kToDevice);
}

void copy_to_host(const Present& one, void* address, uint64_t bytes, long queue) {
  copy(address, one.device + (bytes_of(address) - one.host), bytes, queue, kToHost);
}

void copy_rows(const Present& one, std::byte* base, const std::vector<Row>& rows, bool to_device,
               long queue) {
  for (const Row& row : rows) {
    std::byte* const host = base + row.offset;
    std::byte* const device = one.device + (host - one.host);
    start_copy(to_device ? device : host, to_device ? host : device, row.bytes, queue,
               to_device ? kToDevice : kToHost);
  }
  if (queue == PWX_QUEUE_SYNC && !rows.empty()) wait_for(queue);
}

void forget_present(const void* address) {
  if (table().empty()) return;
  const auto found = table().find(bytes_of(address));
  if (found != table().end()) remove_present(found->second);
}

void free_present() {
  while (!table().empty()) remove_present(table().begin()->second);
}

}  // namespace pwx
