// Keys and handles as the bytes objects that Python passes around, and what all closable objects share.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>

#include "core.h"

namespace pwpy {

using Seconds = std::optional<double>;
using Release = nb::call_guard<Calling>;

/// Closing always completes; an exception that a signal handler raised meanwhile is thrown afterwards.
template <typename Owner>
void close_interruptibly(Owner& owner) {
  owner.close();
  throw_if_interrupted();
}

inline nb::bytes to_bytes(const peerway::Key& key) { return nb::bytes(key.data(), key.size()); }

/// Returns a handle for kernels as the bytes that they take by value.
template <typename Handle>
nb::bytes handle_bytes(const Handle& handle) {
  return nb::bytes(&handle, sizeof handle);
}

inline std::span<const std::byte> as_span(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace pwpy
