#include "path/mapped/mapped.h"

#include "base/format.h"
#include "base/status.h"
#include "device/host/copy.h"

namespace pw {

void mapped_facts(Pair& pair, Region& local, ProcessorMaps& maps) {
  if (pair.remote.kind != PW_HOST) {
    pair.why_not_mapped =
        "only the owner of GPU memory can map it for the processor; peer/copy and peer/store reach it, or "
        "its owner moves the bytes (put from there, get to there)";
    return;
  }
  pair.processor_maps_remote = pair.same_host && (pair.same_process || pair.remote_handle == Handle::memfd);
  if (!pair.processor_maps_remote)
    pair.why_not_mapped = "the processor reaches host memory of a peer only where it came from pw_allocate";
  // Mapping takes some of the GPU's BAR1: only where it is of use.
  else if (pair.local.kind != PW_HOST)
    pair.processor_maps_local = maps.find(local, pair.why_not_mapped) != nullptr;
}

Offer Mapped::probe(const Pair& pair) const {
  if (pair.local.kind == PW_HOST && pair.remote.kind == PW_HOST)
    return Offer::unsuited("there is no GPU at either end; the processor copies (peer/shm, peer/cma)");
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  if (pair.remote.kind != PW_HOST) return Offer::unsuited(pair.why_not_mapped);
  if (!pair.processor_maps_local || !pair.processor_maps_remote) return Offer::hindered(pair.why_not_mapped);
  return Offer::yes();
}

pw_status Mapped::start(const Transfer& transfer) {
  std::string why_not;
  CpuMapping* mapping = maps_.find(*transfer.local, why_not);
  // The route was found with another region of this kind of memory; this one may be too large for BAR1.
  if (mapping == nullptr)
    return fail(PW_UNAVAILABLE,
                format("peerway: mapped cannot serve the local region of {} bytes on {}: {}; "
                       "forbid mapped for it, or use another path",
                       transfer.local->bytes(), to_string(transfer.local->device().id()), why_not));
  const uint64_t bytes = transfer.layout.shape.block_bytes;
  const Copy copy = copy_between(transfer, mapping->address() + transfer.local_offset,
                                 transfer.remote->host_address() + transfer.remote_offset);
  if (transfer.op == Op::put)
    for_each_block(copy, [&](std::byte* to, const std::byte* from) { mapping->load(to, from, bytes); });
  else
    for_each_block(copy, [&](std::byte* to, const std::byte* from) { mapping->store(to, from, bytes); });
  return PW_OK;
}

}  // namespace pw
