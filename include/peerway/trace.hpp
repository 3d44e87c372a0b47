// Regions of a program in its trace: `const peerway::trace::Region region("solve");` lasts to the end of its
// scope. Needs no library, and costs one branch where `peerway trace` does not run.
#pragma once

#include <string_view>

#include "peerway/trace/recorder.h"

namespace peerway::trace {

inline const bool recording = pw_trace_level() != 0;

class Region {
 public:
  explicit Region(std::string_view name) {
    if (!recording) return;
    writer_ = pw_trace_mine != nullptr ? pw_trace_mine : pw_trace_open("program");
    if (writer_ == nullptr) return;
    event_.kind = PW_TRACE_REGION;
    event_.name = pw_trace_name(writer_, name.data(), name.size()) & 0x3ff;
    event_.peer = event_.tag = -1;
    pw_trace_begin(writer_, &event_);
  }
  ~Region() {
    // A child of fork() has a writer of its own and records no region of its parent.
    if (writer_ == nullptr || writer_ != pw_trace_mine) return;
    pw_trace_end(writer_, &event_);
    pw_trace_add(writer_, &event_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  pw_trace_writer* writer_ = nullptr;
  pw_trace_event event_{};
};

}  // namespace peerway::trace
