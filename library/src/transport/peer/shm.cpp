#include "transport/peer/shm.h"

#include "device/host/copy.h"

namespace pw {

Offer PeerShm::offer_for(const Pair& pair) {
  if (pair.local.kind != PW_HOST || pair.remote.kind != PW_HOST)
    return Offer::unsuited("the CPU cannot copy to or from GPU memory; peer/copy and peer/store do");
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  if (!pair.same_process && pair.remote_handle != Handle::memfd)
    return Offer::unsuited(
        "the peer's memory did not come from pw_region_allocate, so that it cannot be mapped; peer/cma "
        "serves it");
  return Offer::yes();
}

pw_status PeerShm::start(const Transfer& transfer) {
  std::byte* remote = transfer.remote->host_address() + transfer.remote_offset;
  std::byte* local = transfer.local->address() + transfer.local_offset;
  const Copy copy = copy_between(transfer, local, remote);
  if (non_temporal_)
    host_copy_streaming(copy);
  else
    host_copy(copy);
  return PW_OK;
}

pw_status PeerShm::start_range(const RangeTransfer& range) {
  if (non_temporal_) return Path::start_range(range);
  copy_range(range);
  return PW_OK;
}

}  // namespace pw
