// The call site: the place in the program from which a public function was entered. All that the library
// records until the function returns has it.
#pragma once

#include <string_view>

#include "trace/operation.h"

namespace pw::trace {

/// First in a public function: `const trace::Call call(__builtin_return_address(0));`. For nested calls the
/// outermost counts. It costs one branch where nothing is recorded, and is inlined because it counts where
/// two ranks answer each other.
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

  /// The writer of this thread, if nobody further out has said where the program is.
  static pw_trace_writer* unplaced() {
    pw_trace_writer* mine = writer();
    const bool wanted = mine != nullptr && mine->level != PW_TRACE_COUNTERS;
    return wanted && mine->site == 0 && mine->returns_to == nullptr ? mine : nullptr;
  }
  /// A child of fork() has a writer of its own; the parent's is not there.
  static void forget(pw_trace_writer* writer) {
    if (writer == nullptr || writer != pw_trace_mine) return;
    writer->site = 0;
    writer->returns_to = nullptr;
  }

 private:
  pw_trace_writer* writer_ = nullptr;  ///< if this is the outermost call
};

/// Whether calls of this thread are recorded with their places.
bool wants_places();
/// The place from which this thread was called, for what another thread or a GPU does of it later; empty
/// where it is not known. It is good until the call returns.
std::string_view place();
/// The same for a program in a language that has its own idea of a place, such as "train at model.py:12". To
/// be made only if wants_places(). Nothing comes of an empty one.
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
