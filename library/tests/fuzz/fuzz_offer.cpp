// Any bytes as a rank's offer for a plan: read as what was written, or refused. A lane that lies in its
// mailbox and whose block fits its region touches nothing else.
#include <cstdint>

#include "base/status.h"
#include "fuzz/fuzz.h"
#include "plan/negotiation/lanes.h"

namespace pw::fuzz {

namespace {

constexpr uint64_t kMailbox = 1 << 16, kRegion = 1 << 20;

void use(const LaneOffer& lane) {
  check_inside("mailbox", lane.words, kBytesOfWords, kMailbox);
  require(lane.words + kBytesOfWords <= kMailbox);
  pw_block mine{};
  mine.block_bytes = lane.bytes;
  const Layout layout = join(lane.block, kRegion, "remote region", mine, kRegion, "local region");
  if (layout.shape.bytes() > 0) require(end_of(layout.shape, layout.to, lane.block.offset) <= kRegion);
}

}  // namespace

FUZZ(fuzz_offer) {
  try {
    const PlanOffer offer = parse_plan_offer({reinterpret_cast<const std::byte*>(data), size});
    const Bytes written = pack(offer);
    require(pack(parse_plan_offer(written)) == written);
    for (const LaneOffer& lane : offer.receives) use(lane);
  } catch (const Error&) {
  }
}

}  // namespace pw::fuzz
