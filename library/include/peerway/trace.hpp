// Named regions of a program in its trace: `const peerway::trace::Region region("solve");` lasts to the end
// of its scope. Needs no library, and costs one branch when the program does not run under `peerway trace`.
#pragma once

#include <string_view>

#include "peerway/trace/recorder.h"

namespace peerway::trace {

inline const bool recording = pw_trace_attach() != 0;

/// A trace region: a named part of the program. peerway::Region is something else, registered memory.
class Region {
 public:
  explicit Region(std::string_view name) {
    if (!recording) return;
    counts_ = pw_trace_counts(name.data(), name.size()) != 0;
    if (counts_) pw_trace_region_begins();
    if (pw_trace_recording()) begin(name);
  }
  ~Region() {
    if (counts_) pw_trace_region_ends();
    if (writer_ != nullptr) end();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  // Not inlined, so that a region costs almost nothing when nothing is recorded.
  [[gnu::noinline]] void begin(std::string_view name) {
    writer_ = pw_trace_mine != nullptr ? pw_trace_mine : pw_trace_open("program");
    if (writer_ == nullptr) return;
    pw_trace_fill(&event_, PW_TRACE_REGION, pw_trace_name(writer_, name.data(), name.size()), 0, -1, -1);
    pw_trace_begin(writer_, &event_);
  }
  [[gnu::noinline]] void end() {
    // A child of fork() has its own writer and does not record regions that its parent began.
    if (writer_ != pw_trace_mine) return;
    pw_trace_end(writer_, &event_);
    pw_trace_add(writer_, &event_);
  }

  pw_trace_writer* writer_ = nullptr;
  bool counts_ = false;  // this region is one of those that were asked for
  pw_trace_event event_{};
};

}  // namespace peerway::trace
