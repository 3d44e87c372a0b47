// What ranks tell one another of the collectives that they make, and how they compare it; and which method
// the costs of messages choose.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
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

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// A message takes 1 us and 1 us for each 1000 bytes; between hosts 10 times as long.
double linear(bool same_host, uint64_t bytes) {
  return (same_host ? 1 : 10) * (1 + static_cast<double>(bytes) / 1000);
}
double unknown(bool, uint64_t) { return kUnknown; }

CollectiveRequest sum_of(uint64_t count, uint32_t members, int32_t device_kind, pw_order order) {
  pw_collective given = all_reduce_of(count);
  given.order = order;
  std::vector<int32_t> group(members);
  std::iota(group.begin(), group.end(), 0);
  CollectiveRequest request = request_of(given, group);
  request.device_kind = device_kind;
  return request;
}

std::vector<Estimate> estimates_for(const CollectiveRequest& request, const Placement& placement,
                                    const MessageCost& cost, double memory_bytes_per_us = 0) {
  return estimates_of(request, placement, methods_of(request, placement), {cost, memory_bytes_per_us});
}

struct ChoiceCase {
  uint64_t count;  ///< of float32
  uint32_t members;
  pw_device_kind device_kind;
  CollectiveMethod method;
};

TEST(CollectiveMethods, SmallSumsAreOneShotAndLargeOnesTwoShot) {
  using enum CollectiveMethod;
  for (const ChoiceCase& at :
       {ChoiceCase{2, 2, PW_HOST, one_shot}, ChoiceCase{1 << 20, 2, PW_HOST, two_shot},  // each sums half
        ChoiceCase{2, 4, PW_CUDA, one_shot}, ChoiceCase{1 << 20, 4, PW_CUDA, two_shot},
        // Two GPUs send as much by either method, and how fast they sum is not known here.
        ChoiceCase{1 << 20, 2, PW_CUDA, one_shot}}) {
    const CollectiveRequest request = sum_of(at.count, at.members, at.device_kind, PW_ORDER_OF_GROUP);
    EXPECT_EQ(estimates_for(request, Hosts(at.members, 0), linear).front().method, at.method)
        << describe(request);
  }
}

TEST(CollectiveMethods, TwoGpusSumHalfEachOnceThatSavesMoreThanARound) {
  using enum CollectiveMethod;
  constexpr double kMemory = 10000;  // bytes in a microsecond, ten times those of a message
  const auto method_of = [&](uint64_t count) {
    const CollectiveRequest request = sum_of(count, 2, PW_CUDA, PW_ORDER_OF_GROUP);
    return estimates_for(request, Hosts(2, 0), linear, kMemory).front().method;
  };
  // Three times the half of 4 * count bytes less are moved, and a second round costs 1 us.
  EXPECT_EQ(method_of(1 << 10), one_shot);
  EXPECT_EQ(method_of(1 << 11), two_shot);
}

// Among many members a CPU sends fewer messages by a tree, and between hosts fewer bytes by a hierarchy.
TEST(CollectiveMethods, InAnyOrderSmallSumsOfManyAreATree) {
  using enum CollectiveMethod;
  const Hosts one_host(16, 0), two_hosts{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  const CollectiveRequest small = sum_of(2, 16, PW_HOST, PW_ORDER_ANY),
                          large = sum_of(1 << 20, 16, PW_HOST, PW_ORDER_ANY);
  EXPECT_EQ(estimates_for(small, one_host, linear).front().method, tree);
  EXPECT_EQ(estimates_for(small, two_hosts, linear).front().method, tree);
  EXPECT_EQ(estimates_for(large, one_host, linear).front().method, two_shot);
  EXPECT_EQ(estimates_for(large, two_hosts, linear).front().method, hierarchical);
}

// By dimensions a member sends as many bytes as two-shot, in fewer messages, and reads a quarter more to
// combine.
TEST(CollectiveMethods, SumsOfMiddleSizesOnATorusGoByItsDimensions) {
  const CollectiveRequest request = sum_of(1 << 14, 16, PW_HOST, PW_ORDER_ANY);
  Hosts hosts(16);
  std::iota(hosts.begin(), hosts.end(), 0);
  EXPECT_NE(estimates_for(request, hosts, linear).front().method, CollectiveMethod::hierarchical);
  std::vector<std::vector<uint32_t>> coordinates(2);
  for (uint32_t member = 0; member < 16; ++member) {
    coordinates[0].push_back(member % 4);
    coordinates[1].push_back(member / 4);
  }
  EXPECT_EQ(estimates_for(request, {hosts, coordinates}, linear).front().method,
            CollectiveMethod::hierarchical);
}

TEST(CollectiveMethods, WithoutCostsThatWithTheFewestBytesIsChosen) {
  using enum CollectiveMethod;
  const auto chosen = [](uint32_t members, const Hosts& hosts, pw_order order) {
    return estimates_for(sum_of(1 << 20, members, PW_HOST, order), hosts, unknown).front().method;
  };
  EXPECT_EQ(chosen(2, {0, 0}, PW_ORDER_OF_GROUP), one_shot);
  EXPECT_EQ(chosen(3, {0, 0, 0}, PW_ORDER_OF_GROUP), two_shot);
  EXPECT_EQ(chosen(4, {0, 0, 1, 1}, PW_ORDER_ANY), hierarchical);
  EXPECT_EQ(chosen(4, {0, 1, 0, 1}, PW_ORDER_OF_GROUP), two_shot);
}

TEST(CollectiveMethods, TheTextOfEstimatesIsEmptyWithoutCosts) {
  const CollectiveRequest request = sum_of(250, 2, PW_CUDA, PW_ORDER_OF_GROUP);
  EXPECT_EQ(text_of(estimates_for(request, {0, 0}, linear)), "one-shot 2 us, two-shot 3.02 us");
  EXPECT_EQ(text_of(estimates_for(request, {0, 0}, unknown)), "");
}

}  // namespace
}  // namespace pw::collective
