// The order of messages: what may be stored when they overtake one another.
#include <gtest/gtest.h>

#include <vector>

#include "transport/ucx/message.h"

namespace pw::ucx {
namespace {

std::vector<uint64_t> reached_after(const std::vector<uint64_t>& numbers) {
  Order order;
  std::vector<uint64_t> reached;
  for (const uint64_t number : numbers) {
    order.done(number);
    reached.push_back(order.reached());
  }
  return reached;
}

TEST(UcxOrder, ReachesWhatIsDoneWithoutAGap) {
  using Numbers = std::vector<uint64_t>;
  EXPECT_EQ(reached_after({1, 2, 3}), (Numbers{1, 2, 3}));
  EXPECT_EQ(reached_after({2, 1, 3}), (Numbers{0, 2, 3}));
  EXPECT_EQ(reached_after({3, 2, 1}), (Numbers{0, 0, 3}));
  EXPECT_EQ(reached_after({1, 4, 3, 6, 2, 5}), (Numbers{1, 1, 1, 1, 4, 6}));
}

}  // namespace
}  // namespace pw::ucx
