#include "xacc/runtime/data/clause_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"

namespace pwx {

HostMemory host_memory(const pwx_data& data) {
  if (data.array == nullptr) return {data.address, data.bytes};
  const pwx_array_state& state = allocated(*data.array, "a data clause");
  return {state.memory.address(), state.bytes};
}

Present* present_of(const pwx_data& data) {
  const HostMemory memory = host_memory(data);
  return find_present(memory.address, memory.bytes, data.name);
}

bool begins_zero(const pwx_data& data) {
  return data.kind == PWX_DATA_COPYOUT_ZERO || data.kind == PWX_DATA_CREATE_ZERO;
}

void refuse_absent(const pwx_data& data, const char* where) {
  refuse(data.name, " is not present on the GPU", where,
         "; copy or create it by a data construct or enter data before");
}

namespace {

/// The ranges that are present where host and device memory are one; empty unless the program has clauses
/// with zero.
std::vector<HostMemory>& on_host() {
  static auto& all = *new std::vector<HostMemory>;  // outlives atexit
  return all;
}
bool zero_is_used = false;

bool is_nothing(const pwx_data& data) {
  return data.array != nullptr ? data.array->state == nullptr : data.address == nullptr;
}

}  // namespace

void begin_on_host(int count, const pwx_data* data) {
  for (int i = 0; i < count && zero_is_used; ++i) {
    if (is_nothing(data[i])) continue;
    const HostMemory memory = host_memory(data[i]);
    const auto* const first = static_cast<const std::byte*>(memory.address);
    const auto holds = [&](const HostMemory& other) {
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
    const HostMemory memory = host_memory(data[i]);
    const auto is_it = [&](const HostMemory& other) { return other.address == memory.address; };
    if (all) std::erase_if(on_host(), is_it);
    const auto last = std::find_if(on_host().rbegin(), on_host().rend(), is_it);
    if (last != on_host().rend()) on_host().erase(std::next(last).base());
  }
}

}  // namespace pwx

extern "C" void pwx_data_zero(void) { pwx::zero_is_used = true; }
