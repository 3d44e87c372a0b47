// Lanes: a send of one rank's plan matched with the receive of another's. What the two ranks tell each other
// before, and which method each lane uses: pure decisions that come out the same at both ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "device/device.h"
#include "device/shape.h"

namespace pw {

/// The method by which the bytes of a lane move.
enum class LaneKind : uint8_t {
  slots,     ///< into two slots of the receiver, used in turn, and from there to their place
  lines,     ///< likewise on GPUs, by lines of 128 bytes instead of packets of 16
  straight,  ///< from the source to the target, once the receiver has started the same epoch
  posted,    ///< by the proxy and any path, once the receiver has started the same epoch
};

inline bool through_slots(LaneKind kind) { return kind == LaneKind::slots || kind == LaneKind::lines; }

inline constexpr uint64_t kLine = 128;  // bytes: what belongs to one lane shares no cache line with another's
inline constexpr uint32_t kMostPieces = 128;  ///< workers that share a lane, or all lanes of some methods
inline constexpr uint64_t kBytesOfWords = kMostPieces * sizeof(uint64_t);  ///< of a lane, in a mailbox

/// One end of a lane, as its rank tells the others of it.
struct LaneOffer {
  int32_t rank = 0;  ///< at the other end
  int32_t tag = 0;
  uint64_t bytes = 0;
  uint32_t unit = 8;  ///< largest word, at most 8 bytes, that this end's addresses and strides allow
  uint64_t words =
      0;  ///< offset in the rank's mailbox of kMostPieces words: a send's credit, a receive's arrivals
  uint32_t region = 0;  ///< index of its region's key (receive)
  pw_block block{};     ///< where the bytes lie in the region (receive)
};

/// Everything that a rank tells the others.
struct PlanOffer {
  uint8_t device_kind = PW_HOST;
  Bytes mailbox;  ///< its key; empty when the plan has no lanes
  std::vector<Bytes> regions;
  std::vector<LaneOffer> sends;
  std::vector<LaneOffer> receives;
};

Bytes pack(const PlanOffer& offer);
/// Throws Error for bytes that are no offer.
PlanOffer parse_plan_offer(ByteView bytes);
/// Throws Error unless `bytes` bytes of 8-byte words at an offset that a rank sent lie within its `name`,
/// which has `room` bytes.
void check_inside(const char* name, uint64_t offset, uint64_t bytes, uint64_t room);

/// The second round: which of one another's memory the two ends can reach.
struct LaneReach {
  bool mailbox = false;  ///< of the other end
  bool region = false;   ///< send: the target's region
  bool lines = false;    ///< the link to the mailbox carries lines of 128 bytes whole
};

/// What an end reports of a lane in the second round: the method that the sender, which asks the route, has
/// chosen, and how many workers share the lane; of a receiver only whether the proxy has to do it, which is
/// posted, or slots.
struct LaneReport {
  LaneKind kind = LaneKind::posted;
  uint32_t pieces = 1;
};
void put_report(ByteWriter& to, const LaneReport& report);
/// The report of the lane with this number in a message. Throws Error if the bytes are not a report.
LaneReport parse_lane_report(ByteView letter, size_t number);

/// The largest word of at most 8 bytes in which one side of a layout can be moved.
uint32_t unit_of(const std::byte* address, const Shape& shape, const Strides& strides);

/// Bytes of a slot for `bytes` bytes in words of `unit` on a device of that kind: packets and lines on a GPU
/// carry flags, the host's slots only data. A GPU's slot has room for both, since a kernel that uses the lane
/// itself (pw_plan_get_lane) sends packets.
uint64_t slot_bytes(uint8_t device_kind, uint64_t bytes, uint32_t unit);

/// How many workers of a GPU share a lane of packets.
uint32_t packet_pieces(uint64_t bytes, uint32_t unit);
/// And one that goes by lines, or straight, of `of_all` bytes that do so in a start. All together are not
/// more than kMostPieces, or one each: a worker that has pieces of several lanes does them one after another,
/// and of those that go straight waits in each until all stores have arrived.
uint32_t line_pieces(uint64_t bytes, uint32_t unit, uint64_t of_all);
uint32_t straight_pieces(uint64_t bytes, uint64_t of_all);

/// The other end of `mine`, a lane of rank `self`, among those of its rank. Throws Error when there is none,
/// or it moves another number of bytes.
const LaneOffer& partner(const LaneOffer& mine, int self, std::span<const LaneOffer> theirs, bool sends);

}  // namespace pw
