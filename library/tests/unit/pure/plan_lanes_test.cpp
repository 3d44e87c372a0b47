// Which way a lane goes, and what ranks tell one another of it: decisions as tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "plan/negotiation/lanes.h"
#include "plan/negotiation/methods.h"
#include "route/class.h"

namespace pw {
namespace {

struct MethodsCase {
  const char* name;
  uint8_t device;
  LaneReach sender;
  std::vector<std::string> methods;  // that the sender's route chooses from
};

class Methods : public ::testing::TestWithParam<MethodsCase> {};

TEST_P(Methods, DependOnWhatTheSenderReaches) {
  const MethodsCase& expected = GetParam();
  std::vector<std::string> names;
  for (const NamedOffer& method : methods_of(expected.device, expected.sender)) {
    EXPECT_EQ(method.offer.available, method.offer.why_not.empty());
    if (method.offer.available) names.push_back(method.name);
  }
  EXPECT_EQ(names, expected.methods);
}

constexpr LaneReach kAll{true, true, true}, kNoLines{true, true, false}, kMailbox{true, false, false},
    kRegionOnly{false, true, false};

INSTANTIATE_TEST_SUITE_P(
    All, Methods,
    ::testing::Values(
        MethodsCase{"on the host", PW_HOST, kAll, {"plan/slots", "plan/straight", "plan/posted"}},
        MethodsCase{"region not mapped", PW_HOST, kMailbox, {"plan/slots", "plan/posted"}},
        MethodsCase{"on GPUs over NVLink",
                    PW_CUDA,
                    kAll,
                    {"plan/lines", "plan/packets", "plan/straight", "plan/posted"}},
        MethodsCase{"on GPUs over PCIe", PW_CUDA, kNoLines, {"plan/packets", "plan/straight", "plan/posted"}},
        MethodsCase{"the sender reaches the region alone", PW_CUDA, kRegionOnly, {"plan/posted"}}),
    [](const auto& info) { return "case" + std::to_string(info.index); });

TEST(SendMethods, EveryMethodThatTablesMayNameIsOne) {
  for (const uint8_t device : {PW_HOST, PW_CUDA})
    for (const NamedOffer& method : methods_of(device, kAll))
      EXPECT_NE(std::ranges::find(route::kPlanMethods, method.name), route::kPlanMethods.end())
          << method.name;
}

TEST(Lanes, UnitsAreTheLargestWordThatAllAllows) {
  alignas(16) std::array<std::byte, 64> memory{};
  Shape shape;
  shape.block_bytes = 24;
  EXPECT_EQ(unit_of(memory.data(), shape, {}), 8u);
  EXPECT_EQ(unit_of(memory.data() + 4, shape, {}), 4u);
  EXPECT_EQ(unit_of(memory.data() + 1, shape, {}), 1u);
  shape.dims = 1;
  shape.count = {2};
  EXPECT_EQ(unit_of(memory.data(), shape, {34}), 2u);
  shape.block_bytes = 7;
  EXPECT_EQ(unit_of(memory.data(), shape, {32}), 1u);
}

TEST(Lanes, SlotsOfSmallMessagesOfTheHostShareACacheLineWithTheirWord) {
  for (const uint64_t bytes : {0, 8, 17, 24}) {
    EXPECT_TRUE(slots_in_mailbox(PW_HOST, bytes)) << bytes;
    EXPECT_LE(sizeof(uint64_t) + 2 * slot_bytes(PW_HOST, bytes, 8), kCacheLine) << bytes;
  }
  EXPECT_EQ(slot_bytes(PW_HOST, 17, 1), 24u);
  EXPECT_FALSE(slots_in_mailbox(PW_HOST, 25));
  EXPECT_FALSE(slots_in_mailbox(PW_CUDA, 8)) << "there the data and its flag are one packet";
}

TEST(Lanes, SlotsHoldDataAndFlags) {
  EXPECT_EQ(slot_bytes(PW_HOST, 100, 4), 128u);
  EXPECT_EQ(slot_bytes(PW_CUDA, 128, 8), 256u) << "a flag for each four bytes";
  EXPECT_EQ(slot_bytes(PW_CUDA, 128, 4), 384u) << "three lines take more than 32 packets";
  EXPECT_EQ(slot_bytes(PW_CUDA, 128, 1), 1152u) << "a word of a line for each byte";
  EXPECT_EQ(slot_bytes(PW_CUDA, uint64_t{1} << 32, 8), uint64_t{1} << 33)
      << "the route decides, not the size";
}

TEST(Lanes, PiecesGrowWithTheBytes) {
  EXPECT_EQ(packet_pieces(0, 8), 1u);
  EXPECT_EQ(packet_pieces(8, 8), 1u);
  EXPECT_EQ(packet_pieces(2049, 8), 2u);
  EXPECT_EQ(packet_pieces(uint64_t{1} << 30, 8), kMostPieces);
  EXPECT_EQ(line_pieces(8, 8, 8), 1u);
  EXPECT_EQ(line_pieces(1920, 8, 1920), 1u) << "16 lines";
  EXPECT_EQ(line_pieces(1921, 8, 1921), 2u);
  EXPECT_EQ(straight_pieces(0, 0), 1u);
  EXPECT_EQ(straight_pieces(16385, 16385), 2u);
  EXPECT_EQ(straight_pieces(uint64_t{1} << 40, uint64_t{1} << 40), kMostPieces);
}

TEST(Lanes, WhatGoesStraightOrByLinesSharesTheWorkers) {
  constexpr uint64_t kFace = 3 << 20;
  EXPECT_EQ(line_pieces(kFace, 8, 4 * kFace), kMostPieces / 4);
  EXPECT_EQ(straight_pieces(kFace, 4 * kFace), kMostPieces / 4);
  EXPECT_EQ(straight_pieces(kFace, kFace + (kFace << 10)), 1u) << "one beside a much larger one";
  EXPECT_EQ(straight_pieces(32 << 10, 4 * kFace), 1u) << "and none has more than its bytes are worth";
}

TEST(Lanes, ReportsAreInTheOrderOfTheLanes) {
  const std::vector<LaneReport> reports{
      {SendMethod::straight, 7}, {SendMethod::posted, 1}, {SendMethod::slots, 128}, {SendMethod::lines, 3}};
  ByteWriter to;
  for (const LaneReport& report : reports) put_report(to, report);
  const Bytes letter = to.take();
  for (size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(parse_lane_report(letter, i).method, reports[i].method);
    EXPECT_EQ(parse_lane_report(letter, i).pieces, reports[i].pieces);
  }
  EXPECT_THROW(parse_lane_report(letter, reports.size()), Error) << "there are no more";
}

TEST(Lanes, ReportsOfNoMethodOrTooManyPiecesAreRefused) {
  for (const auto& [kind, pieces] :
       std::vector<std::pair<int, uint32_t>>{{4, 1}, {0, 0}, {0, kMostPieces + 1}}) {
    ByteWriter to;
    put_report(to, {static_cast<SendMethod>(kind), pieces});
    EXPECT_THROW(parse_lane_report(to.take(), 0), Error) << kind << ", " << pieces;
  }
}

TEST(Lanes, OffersTravelWhole) {
  PlanOffer offer;
  offer.device_kind = PW_CUDA;
  offer.mailbox = Bytes(5, std::byte{7});
  offer.regions = {Bytes(3, std::byte{1}), Bytes()};
  LaneOffer lane;
  lane.rank = 3;
  lane.tag = -9;
  lane.bytes = 1234567890123;
  lane.block.dims = 2;
  lane.block.count[1] = 5;
  lane.block.stride[1] = 640;
  lane.region = 1;
  offer.sends = {lane};
  offer.receives = {lane, lane};
  const Bytes packed = pack(offer);
  const PlanOffer read = parse_plan_offer(packed);
  EXPECT_EQ(pack(read), packed);
  EXPECT_EQ(read.receives[1].bytes, lane.bytes);
  EXPECT_EQ(read.receives[1].block.stride[1], 640);
  for (size_t length = 0; length < packed.size(); ++length)
    EXPECT_THROW(parse_plan_offer(ByteView(packed).first(length)), Error) << length;
}

TEST(Lanes, OffersThatContradictThemselvesAreRefused) {
  PlanOffer offer;
  offer.receives = {LaneOffer{}};
  EXPECT_THROW(parse_plan_offer(pack(offer)), Error) << "it has no region 0";
  offer.regions = {Bytes()};
  EXPECT_NO_THROW(parse_plan_offer(pack(offer)));
  for (const uint32_t unit : {0u, 3u, 16u}) {
    offer.receives[0].unit = unit;
    EXPECT_THROW(parse_plan_offer(pack(offer)), Error) << unit;
  }
}

TEST(Lanes, WhatARankOpensLiesInItsMemory) {
  EXPECT_NO_THROW(check_inside("slots", 512, 512, 1024));
  const auto refused = [](uint64_t offset, uint64_t bytes) {
    EXPECT_THROW(check_inside("slots", offset, bytes, 1024), Error) << offset << ' ' << bytes;
  };
  refused(1024, 8);
  refused(4, 8);
  refused(UINT64_MAX - 7, 8);
  refused(520, 512);
  refused(0, 1025);
  refused(0, uint64_t{1} << 63);
}

TEST(Lanes, PartnersMustAgree) {
  LaneOffer mine;
  mine.rank = 1;
  mine.tag = 4;
  mine.bytes = 64;
  LaneOffer theirs = mine;
  theirs.rank = 0;
  const std::vector<LaneOffer> good{theirs};
  EXPECT_EQ(partner(mine, 0, good, true).tag, 4);
  theirs.bytes = 63;
  const std::vector<LaneOffer> shorter{theirs};
  EXPECT_THROW(partner(mine, 0, shorter, true), Error);
  EXPECT_THROW(partner(mine, 0, {}, true), Error);
  theirs.bytes = 64;
  theirs.tag = 5;
  const std::vector<LaneOffer> other{theirs};
  EXPECT_THROW(partner(mine, 0, other, false), Error);
}

}  // namespace
}  // namespace pw
