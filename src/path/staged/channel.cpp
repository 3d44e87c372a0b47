#include "path/staged/channel.h"

#include <sys/mman.h>

namespace pw {

void ChannelEnd::Unmap::operator()(ChannelHeader* header) const { munmap(header, kChannelBytes); }

void ChannelEnd::begin(bool fill, const Layout& layout, uint64_t chunk_bytes, std::byte* first) {
  chunk_bytes_ = chunk_bytes;
  walk_.begin(fill, layout, chunk_bytes, first, queue_);
}

bool ChannelEnd::ready() const {
  return walk_.fills()
             ? passed_ - header_->drained.load(std::memory_order_acquire) < kRingBytes / chunk_bytes_
             : header_->filled.load(std::memory_order_acquire) > passed_;
}

std::byte* ChannelEnd::slot() const {
  return reinterpret_cast<std::byte*>(header_.get()) + kRingOffset +
         passed_ % (kRingBytes / chunk_bytes_) * chunk_bytes_;
}

pw_status ChannelEnd::pass() {
  const pw_status copied = walk_.copy(slot());
  auto& counter = walk_.fills() ? header_->filled : header_->drained;
  const pw_status told = queue_->write_aside(reinterpret_cast<uint64_t*>(&counter), ++passed_);
  return copied != PW_OK ? copied : told;
}

}  // namespace pw
