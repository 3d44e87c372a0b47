// When a worker of UCX that polls in vain offers its CPU to other threads.
#include <gtest/gtest.h>

#include "uct/idle.h"

namespace pw::uct {
namespace {

TEST(IdlePolls, OffersThatNobodyTakesBecomeRare) {
  unsigned between = IdlePolls::next(1, 1'000'000);
  unsigned offers = 0;
  for (unsigned polls = 0; polls < 100'000; polls += between, ++offers)
    between = IdlePolls::next(between, 300);
  EXPECT_LT(offers, 50u);
  EXPECT_EQ(IdlePolls::next(between, 300), between);
}

TEST(IdlePolls, AnOfferThatIsTakenIsMadeAgainSoon) {
  const unsigned rare = IdlePolls::next(1u << 11, 300);
  EXPECT_LT(IdlePolls::next(rare, 50'000), 100u);
}

}  // namespace
}  // namespace pw::uct
