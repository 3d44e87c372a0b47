#include "xacc/runtime/data/coarrays_on_gpus.h"

#include <cstring>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/gpu.h"

namespace pwx {
namespace {

constexpr size_t kMailboxBytes = 4096;  // bytes of the mailbox, for the length of the key and the key

}  // namespace

CoarrayOnGpus::CoarrayOnGpus(const peerway::Region& host)
    : bytes_(host.bytes()),
      mailboxes_(program().context.allocate(peerway::host, kMailboxBytes)),
      remotes_(static_cast<size_t>(program().size())) {}

peerway::Region& CoarrayOnGpus::memory() {
  if (memory_) return *memory_;
  memory_ = program().context.allocate(the_gpu().device(), bytes_);
  const peerway::Key key = memory_->key();
  const uint64_t length = key.size();
  if (length > kMailboxBytes - sizeof length)
    refuse("the key of a coarray has ", length, " bytes; at most ", kMailboxBytes);
  auto* const box = static_cast<std::byte*>(mailboxes_.here().address());
  std::memcpy(box + sizeof length, key.data(), length);
  __atomic_store_n(reinterpret_cast<uint64_t*>(box), length, __ATOMIC_RELEASE);
  return *memory_;
}

peerway::Remote& CoarrayOnGpus::remote(int rank, const char* name) {
  auto& there = remotes_[static_cast<size_t>(rank)];
  if (there) return *there;
  peerway::Context& context = program().context;
  peerway::Region copy = context.allocate(peerway::host, kMailboxBytes);
  peerway::check(context.get(copy.span(0, kMailboxBytes), mailboxes_.at(rank).span(0, kMailboxBytes)));
  peerway::check(context.flush(rank));
  const auto* const box = static_cast<const std::byte*>(copy.address());
  uint64_t length = 0;
  std::memcpy(&length, box, sizeof length);
  if (length == 0)
    refuse("coarray ", name, " is not on the GPU of image ", rank,
           "; all images name it in acc declare or enter data, and synchronise, before one reaches it there");
  there = context.import({box + sizeof length, length});
  return *there;
}

}  // namespace pwx
