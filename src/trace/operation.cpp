#include "trace/operation.h"

#include "base/config.h"

namespace pw::trace {

std::atomic<bool> detail::on = false;

// The recorder itself reads the environment, because programs and MPI's calls record without this library.
// The table of settings refuses what it would misread.
void begin() {
  if (config("trace_dir").empty()) return;
  config_number("trace_events");
  detail::on.store(config("trace_level") != "off", std::memory_order_relaxed);
}

pw_trace_writer* writer() { return pw_trace_mine != nullptr ? pw_trace_mine : pw_trace_open("core"); }

Operation::Operation(pw_trace_kind kind, int peer, uint64_t bytes, int32_t tag) : writer_(writer()) {
  if (writer_ == nullptr) return;
  event_.kind = event_.name = kind & 0x3ff;
  event_.bytes = bytes & ((uint64_t{1} << 44) - 1);
  event_.peer = peer;
  event_.tag = tag;
  pw_trace_begin(writer_, &event_);
}

Operation::Operation(std::string_view name, pw_trace_kind kind) : writer_(writer()) {
  if (writer_ == nullptr) return;
  event_.kind = kind & 0x3ff;
  event_.name = pw_trace_name(writer_, name.data(), name.size()) & 0x3ff;
  event_.peer = event_.tag = -1;
  pw_trace_begin(writer_, &event_);
}

void Operation::end() {
  if (writer_ == nullptr || ended_) return;
  pw_trace_end(writer_, &event_);
  ended_ = true;
}

void Operation::finish() {
  // A child of fork() has a writer of its own, as another thread has.
  if (writer_ == nullptr || writer_ != pw_trace_mine) return;
  end();
  pw_trace_add(writer_, &event_);
  writer_ = nullptr;
}

Operation::~Operation() { finish(); }

void Operation::by(std::string_view path) {
  if (writer_ != nullptr) event_.where = pw_trace_name(writer_, path.data(), path.size()) & 0x3ff;
}

}  // namespace pw::trace
