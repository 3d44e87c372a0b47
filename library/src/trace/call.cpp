#include "trace/call.h"

namespace pw::trace {

bool wants_places() { return recording() && Call::unplaced() != nullptr; }

std::string_view place() {
  pw_trace_writer* const mine = recording() ? writer() : nullptr;
  const unsigned site = mine != nullptr ? site_of(mine) : 0;
  return site != 0 ? std::string_view(mine->ring->name[site]) : std::string_view();
}

NamedCall::NamedCall(std::string_view place) : writer_(place.empty() ? nullptr : Call::unplaced()) {
  if (writer_ != nullptr) writer_->site = pw_trace_name(writer_, place.data(), place.size());
}

NamedCall::~NamedCall() { Call::forget(writer_); }

}  // namespace pw::trace
