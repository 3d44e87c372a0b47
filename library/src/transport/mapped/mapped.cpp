#include "transport/mapped/mapped.h"

#include "base/format.h"
#include "base/status.h"
#include "device/host/copy.h"

namespace pw {

MappedFacts Mapped::facts(const Pair& pair, Region& local) {
  MappedFacts facts;
  if (pair.remote.kind != PW_HOST) {
    facts.why_not =
        "only the owner of GPU memory can map it for the CPU; peer/copy and peer/store reach it, or "
        "its owner moves the bytes (put from there, get to there)";
    return facts;
  }
  facts.remote = pair.same_host && (pair.same_process || pair.remote_handle == Handle::memfd);
  if (!facts.remote)
    facts.why_not = "the CPU reaches host memory of a peer only where it came from pw_region_allocate";
  // Tries it only for GPU memory, because each mapping takes some of the GPU's BAR1.
  else if (pair.local.kind != PW_HOST)
    facts.local = maps_.find(local, facts.why_not) != nullptr;
  return facts;
}

Offer Mapped::offer_for(const Pair& pair, const MappedFacts& facts) {
  if (pair.local.kind == PW_HOST && pair.remote.kind == PW_HOST)
    return Offer::unsuited("there is no GPU at either end; the CPU copies (peer/shm, peer/cma)");
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  if (pair.remote.kind != PW_HOST) return Offer::unsuited(facts.why_not);
  if (!facts.local || !facts.remote) return Offer::hindered(facts.why_not);
  return Offer::yes();
}

std::vector<std::unique_ptr<Path>> MappedTransport::paths() {
  std::vector<std::unique_ptr<Path>> paths;
  paths.push_back(std::make_unique<Mapped>(maps_));
  return paths;
}

pw_status Mapped::start(const Transfer& transfer) {
  std::string why_not;
  CpuMapping* mapping = maps_.find(*transfer.local, why_not);
  // The route may have been found with another region of the same class; this one may be too large for BAR1.
  if (mapping == nullptr)
    return fail(PW_UNAVAILABLE,
                format("mapped cannot serve the local region of {} bytes on {}: {}; "
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
