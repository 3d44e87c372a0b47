#include "transport/staged/channel.h"

#include <sys/mman.h>

#include "trace/operation.h"

namespace pw {

void ChannelEnd::Unmap::operator()(ChannelHeader* header) const { munmap(header, kChannelBytes); }

bool ChannelEnd::use(Device& device, const RingDivision& division) {
  Queue* queue = queues_.use(device, kRingOffset + division.ring_bytes);
  if (queue == nullptr) return false;
  queue_ = queue;
  division_ = division;
  return true;
}

void ChannelEnd::begin(bool fill, const Layout& layout, std::byte* first) {
  walk_.begin(fill, layout, division_.chunk_bytes, first, queue_);
}

bool ChannelEnd::ready() const {
  return walk_.fills() ? passed_ - header_->drained.load(std::memory_order_acquire) < division_.slots()
                       : header_->filled.load(std::memory_order_acquire) > passed_;
}

std::byte* ChannelEnd::slot() const {
  return reinterpret_cast<std::byte*>(header_.get()) + kRingOffset +
         passed_ % division_.slots() * division_.chunk_bytes;
}

pw_status ChannelEnd::pass(int peer) {
  const bool traced = trace::recording();
  const uint64_t began = traced ? trace::now() : 0, bytes = traced ? walk_.bytes() : 0;
  const bool fills = walk_.fills();
  const pw_status copied = walk_.copy(slot());
  auto& counter = walk_.fills() ? header_->filled : header_->drained;
  const pw_status written = queue_->write_aside(reinterpret_cast<uint64_t*>(&counter), ++passed_);
  if (traced) trace::add({PW_TRACE_STAGED, "staged chunk", fills ? "fill" : "drain", began, peer, bytes});
  return copied != PW_OK ? copied : written;
}

}  // namespace pw
