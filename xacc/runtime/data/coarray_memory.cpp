#include "xacc/runtime/data/coarray_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/program/bounce_buffer.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

std::vector<std::unique_ptr<pwx_coarray_state>>& coarrays() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_coarray_state>>;  // outlives atexit
  return all;
}

}  // namespace

peerway::Region* coarray_on_gpu(const void* address, size_t bytes, size_t& offset) {
  for (const auto& coarray : coarrays()) {
    const peerway::Region& memory = coarray->memory.here();
    const auto* const first = static_cast<const std::byte*>(memory.address());
    const auto* const at = static_cast<const std::byte*>(address);
    if (coarray->on_gpus == nullptr || at < first || at + bytes > first + memory.bytes()) continue;
    offset = static_cast<size_t>(at - first);
    return &coarray->on_gpus->memory();
  }
  return nullptr;
}

void free_coarray(const pwx_coarray_state* coarray) {
  std::erase_if(coarrays(), [&](const auto& other) { return other.get() == coarray; });
}

void free_coarrays() {
  coarrays().clear();
  bounce().free();
}

}  // namespace pwx

extern "C" {

void pwx_coarray_init(pwx_coarray* x, const char* name, size_t element_bytes, int ndims, const long* sizes,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::Program& program = pwx::program();
    x->name = name;
    x->element_bytes = element_bytes;
    x->ndims = ndims;
    size_t bytes = element_bytes;
    for (int d = 0; d < ndims; ++d) {
      if (sizes[d] < 0)
        pwx::refuse("coarray ", name, " has a size of ", sizes[d], "; it must not be negative");
      x->size[d] = sizes[d];
      bytes *= static_cast<size_t>(sizes[d]);
    }
    bytes = std::max(bytes, size_t{1});  // an empty one is a coarray, too
    auto state = std::unique_ptr<pwx_coarray_state>(new pwx_coarray_state{
        pwx::SymmetricMemory(x->base == nullptr ? program.context.allocate(peerway::host, bytes)
                                                : program.context.register_memory(x->base, bytes)),
        nullptr,
        {}});
    x->base = state->memory.here().address();
    x->state = state.get();
    pwx::coarrays().push_back(std::move(state));
  });
}

void pwx_coarray_bind(pwx_coarray* x, void* argument, const char* name, size_t element_bytes, int ndims,
                      const long* sizes, const pwx_where* where) {
  pwx::guarded(where, [&] {
    size_t bytes = element_bytes;
    for (int d = 0; d < ndims; ++d) bytes *= static_cast<size_t>(x->size[d] = sizes[d]);
    const auto* const at = static_cast<const std::byte*>(argument);
    for (const auto& coarray : pwx::coarrays()) {
      const peerway::Region& memory = coarray->memory.here();
      const auto* const first = static_cast<const std::byte*>(memory.address());
      if (at < first || at + bytes > first + memory.bytes()) continue;
      x->name = name;
      x->element_bytes = element_bytes;
      x->ndims = ndims;
      x->base = argument;
      x->state = coarray.get();
      return;
    }
    pwx::refuse("argument ", name, " is in no coarray; pass a coarray, or a part of one without gaps");
  });
}

void pwx_coarray_on_gpus(pwx_coarray* x, const pwx_where* where) {
  pwx::guarded(where,
               [&] { x->state->on_gpus = std::make_unique<pwx::CoarrayOnGpus>(x->state->memory.here()); });
}

}  // extern "C"
