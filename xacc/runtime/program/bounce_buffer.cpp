#include "xacc/runtime/program/bounce_buffer.h"

#include <algorithm>

#include "xacc/runtime/program/program.h"

namespace pwx {

peerway::Span<pw_region> BounceBuffer::take(size_t bytes) {
  if (!memory_ || used_ + bytes > memory_->bytes()) {
    if (memory_) peerway::check(program().context.flush());
    used_ = 0;
    if (!memory_ || bytes > memory_->bytes())
      memory_ = program().context.allocate(peerway::host, std::max<size_t>(bytes, size_t{1} << 20));
  }
  const size_t at = used_;
  used_ += (bytes + 63) / 64 * 64;
  return memory_->span(at, bytes);
}

BounceBuffer& bounce() {
  static auto& buffer = *new BounceBuffer;  // outlives atexit
  return buffer;
}

}  // namespace pwx
