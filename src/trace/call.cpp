#include "trace/call.h"

namespace pw::trace {

bool wants_places() { return recording() && Call::unplaced() != nullptr; }

NamedCall::NamedCall(std::string_view place) : writer_(Call::unplaced()) {
  if (writer_ != nullptr) writer_->site = pw_trace_name(writer_, place.data(), place.size());
}

NamedCall::~NamedCall() { Call::forget(writer_); }

}  // namespace pw::trace
