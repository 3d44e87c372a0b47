#include "uct/inbox.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "base/log.h"
#include "base/shared_memory.h"
#include "base/status.h"

namespace pw::uct {

Inbox::Inbox(nic::Endpoint& endpoint)
    : endpoints_(endpoint.info().endpoints),
      bytes_(ring_at(endpoints_, endpoints_)),
      file_(make_shared_memory("peerway-uct-inbox", bytes_)),
      known_(endpoints_, Presence::unknown) {
  const auto failure = [&](const char* resource) {
    return Error(PW_SYSTEM, format("no {} of {} bytes for arriving messages{}", resource, bytes_,
                                   why_no_shared_memory(errno)));
  };
  if (!file_) throw failure("shared memory");
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) throw failure("mapping");
  address_ = static_cast<std::byte*>(mapped);
  try {
    memory_ = endpoint.add({sizeof(pw_nic_span), mapped, bytes_, PW_NIC_HOST, 0, file_.get(), 0});
  } catch (...) {
    munmap(address_, bytes_);
    throw;
  }
}

Inbox::~Inbox() {
  memory_.reset();
  munmap(address_, bytes_);
}

void Inbox::add_ring(uint32_t number, Presence presence) {
  known_[number] = presence;
  std::byte* base = address_ + ring_at(endpoints_, number);
  if (std::ranges::any_of(rings_, [base](const Ring& ring) { return ring.base == base; })) return;
  rings_.push_back({base, __atomic_load_n(reinterpret_cast<uint64_t*>(base), __ATOMIC_RELAXED), number});
}

void Inbox::refuse(Ring& ring, uint8_t id, size_t bytes) {
  ring.refused = true;
  log(LogLevel::error,
      format("endpoint {} sent a message of kind {} of {} bytes; there are {} kinds, of at most {} "
             "bytes. Nothing more is taken from that endpoint",
             ring.number, id, bytes, kMessageKinds, kMessageBytes));
}

}  // namespace pw::uct
