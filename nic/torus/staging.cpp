#include "torus/staging.h"

#include <algorithm>
#include <cstring>

#include "torus/gpu.h"

namespace pw::torus {

bool StagedSource::load(const Memory& memory, std::byte* to, const std::byte* from, uint64_t bytes,
                        uint64_t remaining) {
  if (begin_ == nullptr || from < begin_ || from + bytes > begin_ + bytes_.size()) {
    bytes_.resize(std::min(remaining, kStaged));
    begin_ = from;
    if (!gpu_copy(bytes_.data(), from, bytes_.size(), memory.device)) return false;
  }
  if (bytes > 0) std::memcpy(to, bytes_.data() + (from - begin_), bytes);
  if (bytes == remaining)
    *this = {};  // frees the buffer, because packets under way still refer to the
                 // message
  return true;
}

void StagedTarget::store(const std::shared_ptr<Memory>& memory, std::byte* to,
                         std::span<const std::byte> bytes) {
  const bool follows = memory == memory_ && to == begin_ + bytes_.size();
  if (!follows || bytes_.size() + bytes.size() > kStaged) flush();
  if (bytes_.empty()) memory_ = memory, begin_ = to;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void StagedTarget::flush() {
  if (bytes_.empty()) return;
  if (!gpu_copy(begin_, bytes_.data(), bytes_.size(), memory_->device)) failed_ = true;
  bytes_.clear();
  memory_.reset();
}

}  // namespace pw::torus
