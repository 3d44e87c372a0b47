#include "path/peer/shm.h"

#include <cstring>

#include "device/host/copy.h"

namespace pw {

Offer PeerShm::probe(const Pair& pair) {
  if (pair.local.kind != PW_HOST || pair.remote.kind != PW_HOST)
    return Offer::unsuited("the processor cannot copy to or from GPU memory; peer/copy and peer/store do");
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  if (!pair.same_process && pair.remote_handle != Handle::memfd)
    return Offer::unsuited(
        "the peer's memory did not come from pw_allocate, so that it cannot be mapped; peer/cma serves it");
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

pw_status PeerShm::start_run(const Run& run) {
  std::byte* remote = run.remote->host_address() + run.remote_offset;
  std::byte* local = run.local->address() + run.local_offset;
  std::byte* to = run.op == Op::put ? remote : local;
  const std::byte* from = run.op == Op::put ? local : remote;
  if (run.bytes == sizeof(uint64_t))
    std::memcpy(to, from, sizeof(uint64_t));  // a size the compiler knows is a load and a store
  else if (non_temporal_)
    host_copy_streaming({to, from, contiguous_layout(run.bytes)});
  else
    std::memcpy(to, from, run.bytes);
  return PW_OK;
}

}  // namespace pw
