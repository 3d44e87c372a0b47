// The call site: the place in the program that called a public function. Every event that the library records
// until the function returns refers to it.
#pragma once

#include <string_view>

#include "trace/operation.h"

namespace pw::trace {

/// Put it first in a public function: `const trace::Call call(__builtin_return_address(0));`. Of nested calls
/// only the outermost counts. It costs one branch when nothing is recorded, and is inlined because every
/// instruction counts when two ranks answer each other.
class Call {
 public:
  explicit Call(const void* returns_to) {
    if (recording()) [[unlikely]] {
      writer_ = unplaced();
      if (writer_ != nullptr) writer_->returns_to = returns_to;
    }
  }
  ~Call() {
    if (writer_ != nullptr) [[unlikely]]
      forget(writer_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Returns the writer of this thread, unless an outer call has already set the place.
  static pw_trace_writer* unplaced() {
    pw_trace_writer* mine = writer();
    const bool wanted = mine != nullptr && mine->level != PW_TRACE_COUNTERS;
    return wanted && mine->site == 0 && mine->returns_to == nullptr ? mine : nullptr;
  }
  /// A child of fork() has a writer of its own; the parent's writer does not exist there.
  static void forget(pw_trace_writer* writer) {
    if (writer == nullptr || writer != pw_trace_mine) return;
    writer->site = 0;
    writer->returns_to = nullptr;
  }

 private:
  pw_trace_writer* writer_ = nullptr;  ///< set if this is the outermost call
};

/// Whether calls of this thread are recorded with their places.
bool wants_places();
/// Returns the place that called this thread, for work that another thread or a GPU does for the call later.
/// Empty if it is unknown. Valid until the call returns.
std::string_view place();
/// The same for a program in a language with its own notion of a place, such as "train at model.py:12". Make
/// it only if wants_places() is true. An empty place has no effect.
class NamedCall {
 public:
  explicit NamedCall(std::string_view place);
  ~NamedCall();
  NamedCall(const NamedCall&) = delete;
  NamedCall& operator=(const NamedCall&) = delete;

 private:
  pw_trace_writer* writer_ = nullptr;
};

}  // namespace pw::trace
