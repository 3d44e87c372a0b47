// A call from Python into the library: the interpreter's lock is let go of, and a trace learns which line of
// the program it is.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "trace/call.h"

namespace pwpy {

/// While it lives, this thread does not hold the interpreter's lock, and what the library records has the
/// line of Python that called.
class Calling {
 public:
  Calling() = default;
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  struct Place {  // found with the lock held
    Place();
    std::optional<pw::trace::NamedCall> call;
  } place_;
  nanobind::gil_scoped_release released_;
};

}  // namespace pwpy
