// The host's memory that a data clause names, and its copy on the GPU.
#pragma once

#include <cstdint>

#include "peerway/xacc/acc.h"
#include "xacc/runtime/data/present.h"

namespace pwx {

/// A span of the host's memory.
struct HostMemory {
  void* address;
  uint64_t bytes;
};

/// What a clause names.
HostMemory host_memory(const pwx_data& data);
/// Its copy, or null.
Present* present_of(const pwx_data& data);
/// With create(zero:) and copyout(zero:) the copy begins as zeros.
bool begins_zero(const pwx_data& data);

/// Throws Failure; `where` ends the sentence: ", and update copies what is".
[[noreturn]] void refuse_absent(const pwx_data& data, const char* where);

// Where host and device memory are one: what data clauses do there.
void begin_on_host(int count, const pwx_data* data);
void end_on_host(int count, const pwx_data* data, bool all);

}  // namespace pwx
