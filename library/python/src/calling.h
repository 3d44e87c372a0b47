// A call from Python into the library: releases the GIL, and tells a trace which line of the program makes
// the call.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "trace/call.h"

namespace pwpy {

/// While it exists, this thread does not hold the GIL, and events that the library records refer to the line
/// of Python that made the call.
class Calling {
 public:
  Calling() = default;
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  struct Place {  // found while the GIL is held
    Place();
    std::optional<pw::trace::NamedCall> call;
  } place_;
  nanobind::gil_scoped_release released_;
};

}  // namespace pwpy
