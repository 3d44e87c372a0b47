// Which operations may overtake others, as a table.
#include <gtest/gtest.h>

#include "torus/order.h"
#include "torus/random.h"

namespace pw::torus {
namespace {

struct Posted {
  char what;  ///< 'p' or 'g'
  uint64_t arrival, held;
};

struct OrderCase {
  const char* name;
  uint32_t guarantees;
  std::vector<Posted> posted;
  std::vector<uint64_t> due;
};

std::vector<uint64_t> dues(uint32_t guarantees, const std::vector<Posted>& posted) {
  Order order(guarantees);
  std::vector<uint64_t> due;
  for (const Posted& one : posted)
    due.push_back(one.what == 'p' ? order.put(one.arrival, one.held) : order.get(one.arrival));
  return due;
}

constexpr uint32_t kPuts = PW_NIC_PUTS_IN_ORDER, kGets = PW_NIC_GETS_BEHIND_PUTS;

TEST(TorusOrder, GivesTheTimesOfTheTable) {
  const std::vector<OrderCase> cases{
      {"a pipe keeps the order", 0, {{'p', 10, 0}, {'p', 5, 0}, {'g', 7, 0}}, {10, 10, 10}},
      {"a put overtakes a held one", 0, {{'p', 10, 50}, {'p', 11, 0}}, {60, 11}},
      {"but not with the guarantee", kPuts, {{'p', 10, 50}, {'p', 11, 0}}, {60, 60}},
      {"the other guarantee is not that one", kGets, {{'p', 10, 50}, {'p', 11, 0}}, {60, 11}},
      {"a get overtakes a held put", 0, {{'p', 10, 50}, {'g', 11, 0}}, {60, 11}},
      {"but not with the guarantee", kGets, {{'p', 10, 50}, {'g', 11, 0}}, {60, 60}},
      {"the other guarantee is not that one", kPuts, {{'p', 10, 50}, {'g', 11, 0}}, {60, 11}},
      {"gets stay in order", kGets, {{'p', 10, 50}, {'g', 11, 0}, {'g', 12, 0}}, {60, 60, 60}},
      {"a get waits for the latest put", kGets, {{'p', 1, 90}, {'p', 2, 0}, {'g', 3, 0}}, {91, 2, 91}},
      {"a put may pass a get that waits", kGets, {{'p', 1, 90}, {'g', 2, 0}, {'p', 3, 0}}, {91, 91, 3}},
      {"both", kPuts | kGets, {{'p', 1, 90}, {'p', 2, 0}, {'g', 3, 0}, {'p', 4, 0}}, {91, 91, 91, 91}},
  };
  for (const OrderCase& one : cases) EXPECT_EQ(dues(one.guarantees, one.posted), one.due) << one.name;
}

TEST(TorusOrder, KeepsEveryGuaranteeWhateverHappens) {
  for (uint32_t guarantees = 0; guarantees < 4; ++guarantees)
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Random random(seed);
      std::vector<Posted> posted;
      for (int i = 0; i < 40; ++i)
        posted.push_back({random.below(2) == 0 ? 'p' : 'g', random.below(100), random.below(3) * 40});
      const auto due = dues(guarantees, posted);
      for (size_t later = 0; later < posted.size(); ++later)
        for (size_t earlier = 0; earlier < later; ++earlier) {
          const char a = posted[earlier].what, b = posted[later].what;
          const bool kept = a == 'g' ? b == 'g' : (guarantees & (b == 'p' ? kPuts : kGets)) != 0;
          EXPECT_TRUE(!kept || due[earlier] <= due[later]);
        }
    }
}

}  // namespace
}  // namespace pw::torus
