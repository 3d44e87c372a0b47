// What the parts of the binding share: the closable owners behind Python's objects and the conversion of
// timeouts.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <optional>
#include <string>

#include "peerway/peerway.hpp"

namespace pwpy {

namespace nb = nanobind;

/// A C++ owner that Python may close before it is collected; use after that raises Closed.
template <typename Owner>
class Closable {
 public:
  Closable(Owner&& owner, const char* what) : owner_(std::move(owner)), what_(what) {}

  Owner& operator*() {
    if (!owner_) {
      throw peerway::Error(peerway::Status::closed,
                           std::string("peerway: this ") + what_ + " was closed before.");
    }
    return *owner_;
  }
  Owner* operator->() { return &**this; }
  [[nodiscard]] bool closed() const { return !owner_.has_value(); }
  void close() { owner_.reset(); }

 private:
  std::optional<Owner> owner_;
  const char* what_;
};

using Team = Closable<peerway::Team>;
using Context = Closable<peerway::Context>;
using Region = Closable<peerway::Region>;
using Remote = Closable<peerway::Remote>;
using Signal = Closable<peerway::Signal>;

/// Seconds as Python gives them; None waits for ever.
inline peerway::Timeout timeout(std::optional<double> seconds) {
  if (!seconds || *seconds > 9e9) return peerway::forever;
  if (!(*seconds >= 0)) {
    throw peerway::Error(peerway::Status::invalid_argument,
                         "peerway: a timeout of " + std::to_string(*seconds) +
                             " s; give seconds, 0 or more, or None to wait for ever.");
  }
  return std::chrono::duration_cast<peerway::Timeout>(std::chrono::duration<double>(*seconds));
}

inline uint64_t pw_timeout(std::optional<double> seconds) {
  return peerway::detail::nanoseconds(timeout(seconds));
}

void bind_core(nb::module_& module);
void bind_bench(nb::module_& module);
void bind_config(nb::module_& module);
void bind_routes(nb::module_& module);

}  // namespace pwpy
