// What ranks tell one another of the collectives that they make, and how they compare it; and which method
// the costs of messages choose.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/choice.h"
#include "collective/request.h"

namespace pw::collective {
namespace {

const std::vector<int32_t> kGroup{0, 1, 2};

pw_collective all_reduce_of(uint64_t count) {
  pw_collective given{};
  given.kind = PW_ALL_REDUCE;
  given.element = PW_FLOAT32;
  given.reduction = PW_MAX;
  given.count = count;
  return given;
}

std::string collective_refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(CollectiveRequests, AreDescribed) {
  EXPECT_EQ(describe(request_of(all_reduce_of(1024), kGroup)),
            "all_reduce (max) of 1024 float32 on the host, among ranks 0 to 2");
  pw_collective given{};
  given.kind = PW_BROADCAST;
  given.element = PW_BFLOAT16;
  given.root = 4;
  given.count = 3;
  CollectiveRequest broadcast = request_of(given, {7, 4});
  broadcast.device_kind = PW_CUDA;
  EXPECT_EQ(describe(broadcast), "broadcast of 3 bfloat16 from rank 4 on GPUs, among ranks 7, 4");
  given.kind = PW_ALL_GATHER;
  const uint64_t counts[] = {5, 0, 2};
  given.counts = counts;
  given.part_count = 3;
  EXPECT_EQ(describe(request_of(given, kGroup)),
            "all_gather of 5 + 0 + 2 bfloat16 on the host, among ranks 0 to 2");
  given.counts = nullptr;
  EXPECT_EQ(describe(request_of(given, kGroup)),
            "all_gather of 3 x 3 bfloat16 on the host, among ranks 0 to 2");
  given.kind = PW_BARRIER;
  EXPECT_EQ(describe(request_of(given, {5})), "barrier on the host, among rank 5 alone");
}

TEST(CollectiveRequests, SurviveTheirJourney) {
  pw_collective given = all_reduce_of(9);
  given.kind = PW_ALL_TO_ALL;
  const uint64_t counts[] = {1, 2, 3}, receive_counts[] = {4, 5, 6};
  given.counts = counts;
  given.receive_counts = receive_counts;
  given.part_count = 3;
  const CollectiveRequest request = request_of(given, kGroup);
  const Bytes packed = pack(request);
  ByteReader reader(packed, "a request");
  const CollectiveRequest parsed = parse_request(reader);
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(pack(parsed), packed);
  EXPECT_EQ(parsed.receive_counts, (std::vector<uint64_t>{4, 5, 6}));
  ByteReader cut(ByteView(packed).first(packed.size() - 1), "a request");
  EXPECT_THROW(parse_request(cut), Error);
  Bytes unknown = packed;
  unknown[0] = std::byte{6};  // there are 6 kinds
  ByteReader of_unknown(unknown, "a request");
  EXPECT_THROW(parse_request(of_unknown), Error);
}

TEST(CollectiveRequests, ThatMakeNoSenseAreRefused) {
  const auto refused = [](const std::function<void(pw_collective&)>& spoil) {
    pw_collective given = all_reduce_of(8);
    spoil(given);
    return collective_refusal([&] { request_of(given, kGroup); });
  };
  EXPECT_NE(
      refused([](auto& given) { given.kind = static_cast<pw_collective_kind>(6); }).find("6 is not a kind"),
      std::string::npos);
  EXPECT_NE(
      refused([](auto& given) { given.element = static_cast<pw_element>(14); }).find("14 is not an element"),
      std::string::npos);
  EXPECT_NE(refused([](auto& given) { given.reduction = PW_OR; }).find("or combines bits"),
            std::string::npos);
  EXPECT_NE(refused([](auto& given) { given.count = UINT64_MAX / 4; }).find("more elements than any memory"),
            std::string::npos);
  EXPECT_NE(refused([](auto& given) {
              given.kind = PW_BROADCAST;
              given.root = 3;
            }).find("from rank 3, which is not one of ranks 0 to 2"),
            std::string::npos);
  const uint64_t counts[] = {1, 2};
  EXPECT_NE(refused([&](auto& given) {
              given.kind = PW_ALL_GATHER;
              given.counts = counts;
              given.part_count = 2;
            }).find("all_gather with 2 counts, among 3 ranks"),
            std::string::npos);
}

TEST(CollectiveRequests, ThatDifferAreRefusedWithBoth) {
  const CollectiveRequest request = request_of(all_reduce_of(8), kGroup),
                          other = request_of(all_reduce_of(9), kGroup);
  EXPECT_NO_THROW(check_same(0, request, 2, request));
  const std::string message = collective_refusal([&] { check_same(0, request, 2, other); });
  EXPECT_EQ(message, collective_refusal([&] { check_same(2, other, 0, request); }));  // whoever compares
  EXPECT_NE(message.find("rank 0 makes the collective \"all_reduce (max) of 8 float32"), std::string::npos)
      << message;
  EXPECT_NE(message.find("rank 2 makes \"all_reduce (max) of 9 float32"), std::string::npos) << message;
}

// A message takes 1 us and 1 us for each 1000 bytes.
double linear(uint64_t bytes) { return 1 + static_cast<double>(bytes) / 1000; }
double unknown(uint64_t) { return std::numeric_limits<double>::infinity(); }

CollectiveMethod chosen(uint64_t count, std::vector<int32_t> group, int32_t device_kind,
                        const MessageCost& cost) {
  pw_collective given = all_reduce_of(count);
  CollectiveRequest request = request_of(given, group);
  request.device_kind = device_kind;
  return choose(request, methods_of(PW_ALL_REDUCE, request.members()), cost);
}

TEST(CollectiveMethods, SmallSumsAreOneShotAndLargeOnesTwoShot) {
  EXPECT_EQ(chosen(2, {0, 1}, PW_HOST, linear), CollectiveMethod::one_shot);
  EXPECT_EQ(chosen(1 << 20, {0, 1}, PW_HOST, linear), CollectiveMethod::two_shot);  // each sums half
  EXPECT_EQ(chosen(2, {0, 1, 2, 3}, PW_CUDA, linear), CollectiveMethod::one_shot);
  EXPECT_EQ(chosen(1 << 20, {0, 1, 2, 3}, PW_CUDA, linear), CollectiveMethod::two_shot);
  // Two GPUs send as much by either method, and sums are not counted.
  EXPECT_EQ(chosen(1 << 20, {0, 1}, PW_CUDA, linear), CollectiveMethod::one_shot);
}

TEST(CollectiveMethods, WithoutCostsThatWithTheFewestBytesIsChosen) {
  EXPECT_EQ(chosen(1 << 20, {0, 1}, PW_HOST, unknown), CollectiveMethod::one_shot);
  EXPECT_EQ(chosen(1 << 20, {0, 1, 2}, PW_HOST, unknown), CollectiveMethod::two_shot);
}

}  // namespace
}  // namespace pw::collective
