// A lane connects a send of one rank with the matching receive of another, for one message of a plan. Here
// are the messages by which the two ranks agree on a lane, and the sizes that both compute alike from them.
// Nothing here touches memory or the network, so unit tests can check all of it.
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
enum class SendMethod : uint8_t {
  slots,     ///< into one of two slots of the receiver, used in turn, and from there to their place; on a GPU
             ///< as packets
  lines,     ///< the same on GPUs, by lines of 128 bytes instead of packets of 16
  straight,  ///< from the source to the target, once the receiver has started the same epoch
  posted,    ///< by the proxy and any path, once the receiver has started the same epoch
};

inline bool through_slots(SendMethod method) {
  return method == SendMethod::slots || method == SendMethod::lines;
}

inline constexpr uint64_t kLine =
    128;  ///< bytes of a line, and of a cache line of GPUs; two lanes share none
inline constexpr uint32_t kMostPieces = 128;  ///< limit of the workers that share a lane, or that share all
                                              ///< lanes by lines or all straight ones
inline constexpr uint64_t kCacheLine = 64;    ///< of CPUs
inline constexpr uint64_t kBytesOfWords = kMostPieces * sizeof(uint64_t);  ///< of one lane, in a mailbox

/// What a rank tells its partner of one of its sends or receives. (A path's Offer in transport/path.h is
/// something else.)
struct LaneOffer {
  int32_t rank = 0;  ///< the rank at the other end
  int32_t tag = 0;
  uint64_t bytes = 0;
  uint32_t unit = 8;    ///< largest word, at most 8 bytes, that this end's addresses and strides allow
  uint64_t words = 0;   ///< offset in the rank's mailbox of the lane's kMostPieces words, which the other end
                        ///< writes: for a send that the receiver is ready, for a receive that data has
                        ///< arrived, and behind the first word small messages (slots_in_mailbox)
  uint32_t region = 0;  ///< receive: index of its region's key in PlanOffer::regions
  pw_block block{};     ///< receive: where the bytes lie in the region
};

/// Everything that a rank tells one partner in the first exchange of a negotiation.
struct PlanOffer {
  uint8_t device_kind = PW_HOST;
  Bytes mailbox;               ///< the key of the rank's mailbox
  std::vector<Bytes> regions;  ///< the keys of the regions that are received into
  std::vector<LaneOffer> sends;
  std::vector<LaneOffer> receives;
};

Bytes pack(const PlanOffer& offer);
/// Throws Error if the bytes are not an offer.
PlanOffer parse_plan_offer(ByteView bytes);
/// Throws Error unless `bytes` bytes of 8-byte words at an offset that a rank sent lie within its `name`,
/// which has `room` bytes.
void check_inside(const char* name, uint64_t offset, uint64_t bytes, uint64_t room);

/// The second exchange: which of one another's memory the two ends can reach.
struct LaneReach {
  bool mailbox = false;  ///< of the other end
  bool region = false;   ///< send: the target's region
  bool lines = false;    ///< the link to the mailbox carries lines of 128 bytes whole
};

/// What an end of a lane reports in the second exchange. The sender has asked the route: it reports the
/// method, and the number of workers that share the lane. The receiver only reports `posted` if its proxy
/// must take part, and `slots` if not.
struct LaneReport {
  SendMethod method = SendMethod::posted;
  uint32_t pieces = 1;
};
void put_report(ByteWriter& to, const LaneReport& report);
/// The report of the lane with this number in a message. Throws Error if the bytes are not a report.
LaneReport parse_lane_report(ByteView message, size_t number);

/// The largest word of at most 8 bytes in which one side of a layout can be moved.
uint32_t unit_of(const std::byte* address, const Shape& shape, const Strides& strides);

/// The size of a slot for a message of `bytes` bytes in words of `unit` bytes, on a device of that kind. A
/// slot of the host holds only data. On a GPU packets and lines also carry flags; the slot has room for
/// either, because a kernel that uses the lane itself (pw_plan_get_lane) sends packets.
uint64_t slot_bytes(uint8_t device_kind, uint64_t bytes, uint32_t unit);
/// Whether both slots of such a message lie in the mailbox, behind the lane's first word. On the host small
/// messages do: then the word and the data are in one cache line, and reading the data costs no second miss.
bool slots_in_mailbox(uint8_t device_kind, uint64_t bytes);

/// How many workers of a GPU share a lane of packets.
uint32_t packet_pieces(uint64_t bytes, uint32_t unit);
/// The same for a lane by lines, or a straight one. `of_all` is the number of bytes that all lanes of the
/// method move in a start. The lanes get workers in proportion to their bytes: at least one each, and
/// together at most kMostPieces if that is possible. More would slow them down: a worker that has pieces of
/// several lanes does them one after another, and in each straight lane waits until its stores have arrived.
uint32_t line_pieces(uint64_t bytes, uint32_t unit, uint64_t of_all);
uint32_t straight_pieces(uint64_t bytes, uint64_t of_all);

/// Returns the other end of `mine`, a lane of rank `self`, among the lanes `theirs` of the partner. `sends`
/// says whether `mine` is a send. Throws Error if there is none, or if it has another number of bytes.
const LaneOffer& partner(const LaneOffer& mine, int self, std::span<const LaneOffer> theirs, bool sends);

}  // namespace pw
