#include "plan/negotiation/lanes.h"

#include <algorithm>
#include <bit>

#include "base/format.h"
#include "peerway/device/line.cuh"

namespace pw {
namespace {

using peerway::device::kWordsOfLine;

constexpr uint64_t kThreadsOfPiece = 256;
constexpr uint64_t kLinesOfPiece = 16;  // two for each warp; with 32, messages of 4 to 64 KiB took longer
constexpr uint64_t kBytesOfStraightPiece = 16384;

void put(ByteWriter& to, const pw_block& block) {
  to.put(block.offset);
  to.put(block.block_bytes);
  to.put(block.dims);
  for (uint32_t d = 0; d < PW_MAX_DIMS; ++d) {
    to.put(block.count[d]);
    to.put(block.stride[d]);
  }
}

pw_block get_block(ByteReader& from) {
  pw_block block{};
  block.offset = from.get<uint64_t>();
  block.block_bytes = from.get<uint64_t>();
  block.dims = from.get<uint32_t>();
  for (uint32_t d = 0; d < PW_MAX_DIMS; ++d) {
    block.count[d] = from.get<uint64_t>();
    block.stride[d] = from.get<int64_t>();
  }
  return block;
}

void put(ByteWriter& to, const std::vector<LaneOffer>& lanes) {
  to.put(static_cast<uint32_t>(lanes.size()));
  for (const LaneOffer& lane : lanes) {
    to.put(lane.rank);
    to.put(lane.tag);
    to.put(lane.bytes);
    to.put(lane.unit);
    to.put(lane.words);
    to.put(lane.region);
    put(to, lane.block);
  }
}

std::vector<LaneOffer> get_lanes(ByteReader& from) {
  std::vector<LaneOffer> lanes;
  for (uint32_t remaining = from.get<uint32_t>(); remaining > 0; --remaining) {
    LaneOffer& lane = lanes.emplace_back();
    lane.rank = from.get<int32_t>();
    lane.tag = from.get<int32_t>();
    lane.bytes = from.get<uint64_t>();
    lane.unit = from.get<uint32_t>();
    lane.words = from.get<uint64_t>();
    lane.region = from.get<uint32_t>();
    lane.block = get_block(from);
    if (!std::has_single_bit(lane.unit) || lane.unit > 8)
      throw Error(PW_INVALID_ARGUMENT, format("a rank's offer for a plan has words of {} bytes", lane.unit));
  }
  return lanes;
}

uint64_t rounded_up(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

uint32_t pieces(uint64_t bytes, uint64_t of_piece, uint32_t most) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((bytes + of_piece - 1) / of_piece, 1, most));
}

// The number of workers for `bytes` out of `of_all`, in proportion.
uint32_t shared_pieces(uint64_t bytes, uint64_t of_all, uint64_t of_piece) {
  const uint64_t most = kMostPieces * bytes / std::max<uint64_t>(of_all, 1);
  return pieces(bytes, of_piece, static_cast<uint32_t>(std::max<uint64_t>(most, 1)));
}

Bytes taken(ByteReader& from) {
  const ByteView view = from.take_sized();
  return {view.begin(), view.end()};
}

}  // namespace

Bytes pack(const PlanOffer& offer) {
  ByteWriter to;
  to.put(offer.device_kind);
  to.put_sized(offer.mailbox);
  to.put(static_cast<uint32_t>(offer.regions.size()));
  for (const Bytes& key : offer.regions) to.put_sized(key);
  put(to, offer.sends);
  put(to, offer.receives);
  return to.take();
}

PlanOffer parse_plan_offer(ByteView bytes) {
  ByteReader from(bytes, "a rank's offer for a plan");
  PlanOffer offer;
  offer.device_kind = from.get<uint8_t>();
  offer.mailbox = taken(from);
  for (uint32_t remaining = from.get<uint32_t>(); remaining > 0; --remaining)
    offer.regions.push_back(taken(from));
  offer.sends = get_lanes(from);
  offer.receives = get_lanes(from);
  from.end();
  for (const LaneOffer& lane : offer.receives)
    if (lane.region >= offer.regions.size())
      throw Error(PW_INVALID_ARGUMENT, format("a rank's offer for a plan names region {} of {}", lane.region,
                                              offer.regions.size()));
  return offer;
}

void check_inside(const char* name, uint64_t offset, uint64_t bytes, uint64_t room) {
  if (offset <= room && bytes <= room - offset && offset % sizeof(uint64_t) == 0) return;
  throw Error(PW_INVALID_ARGUMENT,
              format("a rank's offer for a plan has {} bytes at {} of its {}, which has {} bytes", bytes,
                     offset, name, room));
}

void put_report(ByteWriter& to, const LaneReport& report) {
  to.put(static_cast<uint8_t>(report.method));
  to.put(report.pieces);
}

LaneReport parse_lane_report(ByteView message, size_t number) {
  ByteReader from(message, "what a rank reports of its lanes");
  from.take(number * (sizeof(uint8_t) + sizeof(uint32_t)));
  const auto kind = from.get<uint8_t>();
  const auto pieces = from.get<uint32_t>();
  if (kind > static_cast<uint8_t>(SendMethod::posted) || pieces < 1 || pieces > kMostPieces)
    throw Error(PW_INVALID_ARGUMENT,
                format("a rank reports method {} in {} pieces for a lane", kind, pieces));
  return {static_cast<SendMethod>(kind), pieces};
}

uint32_t unit_of(const std::byte* address, const Shape& shape, const Strides& strides) {
  uint64_t bits = 8 | reinterpret_cast<uint64_t>(address) | shape.block_bytes;
  for (uint32_t d = 0; d < shape.dims; ++d) bits |= static_cast<uint64_t>(strides[d]);
  return 1u << std::countr_zero(bits);
}

uint64_t slot_bytes(uint8_t device_kind, uint64_t bytes, uint32_t unit) {
  if (slots_in_mailbox(device_kind, bytes)) return rounded_up(bytes, sizeof(uint64_t));
  if (device_kind == PW_HOST) return rounded_up(bytes, kLine);
  const uint64_t words = bytes / unit;
  const uint64_t of_packets = rounded_up(words * (unit == 8 ? 16 : 8), kLine);
  const uint64_t of_lines = (words + kWordsOfLine - 1) / kWordsOfLine * kLine;
  return std::max(of_packets, of_lines);
}

bool slots_in_mailbox(uint8_t device_kind, uint64_t bytes) {
  return device_kind == PW_HOST && sizeof(uint64_t) + 2 * rounded_up(bytes, sizeof(uint64_t)) <= kCacheLine;
}

uint32_t packet_pieces(uint64_t bytes, uint32_t unit) {
  return pieces(bytes, kThreadsOfPiece * unit, kMostPieces);
}

uint32_t line_pieces(uint64_t bytes, uint32_t unit, uint64_t of_all) {
  return shared_pieces(bytes, of_all, kLinesOfPiece * kWordsOfLine * unit);
}

uint32_t straight_pieces(uint64_t bytes, uint64_t of_all) {
  return shared_pieces(bytes, of_all, kBytesOfStraightPiece);
}

const LaneOffer& partner(const LaneOffer& mine, int self, std::span<const LaneOffer> theirs, bool sends) {
  const char* my_kind = sends ? "send" : "receive";
  const char* their_kind = sends ? "receive" : "send";
  const auto match = std::ranges::find_if(
      theirs, [&](const LaneOffer& lane) { return lane.rank == self && lane.tag == mine.tag; });
  if (match == theirs.end())
    throw Error(PW_INVALID_ARGUMENT, format("the {} of {} bytes with rank {} and tag {} has no {} in that "
                                            "rank's plan; add one there, with this rank and tag",
                                            my_kind, mine.bytes, mine.rank, mine.tag, their_kind));
  if (match->bytes != mine.bytes)
    throw Error(PW_INVALID_ARGUMENT,
                format("tag {}: the {} here has {} bytes, the {} of rank {} {}; "
                       "give both the same size",
                       mine.tag, my_kind, mine.bytes, their_kind, mine.rank, match->bytes));
  return *match;
}

}  // namespace pw
