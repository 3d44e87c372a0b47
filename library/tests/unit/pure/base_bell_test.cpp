// Bells between two processes: what wakes a progress thread.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/status.h"

namespace pw {
namespace {

bool rung(const Bell& bell) {
  pollfd event{bell.descriptor(), POLLIN, 0};
  return poll(&event, 1, 0) == 1;
}

TEST(Bell, RingsUntilItIsCleared) {
  const Bell bell;
  EXPECT_FALSE(rung(bell));
  for (int i = 0; i < 1000; ++i) bell.ring();
  EXPECT_TRUE(rung(bell));
  bell.clear();
  EXPECT_FALSE(rung(bell));
}

TEST(Bell, ABellThatIsFullDoesNotHoldUpWhoRingsIt) {
  const Bell bell;
  for (int i = 0; i < 100'000; ++i) bell.ring();  // a pipe holds fewer bytes
  EXPECT_TRUE(rung(bell));
  bell.clear();
  EXPECT_FALSE(rung(bell));
}

TEST(Bell, IsRungThroughItsNumberAndIdentity) {
  const Bell bell;
  const Bell far(getpid(), bell.descriptor(), bell.identity());
  far.ring();
  EXPECT_TRUE(rung(bell));
}

TEST(Bell, RingingOneWhoseOwnerIsGoneEndsNobody) {
  auto bell = std::make_unique<Bell>();
  const Bell far(getpid(), bell->descriptor(), bell->identity());
  bell.reset();
  far.ring();  // a signal would end this process
}

TEST(Bell, AnotherDescriptorOfThatNumberIsRefused) {
  const Bell bell, other;
  EXPECT_THROW(Bell(getpid(), bell.descriptor(), other.identity()), Error);
  EXPECT_THROW(Bell(getpid(), 1'000'000, 1), Error);
}

}  // namespace
}  // namespace pw
