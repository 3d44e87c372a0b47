// Pipes that wake the progress thread of another process.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/status.h"
#include "base/wakeup_pipe.h"

namespace pw {
namespace {

bool wakes(const WakeupPipe& pipe) {
  pollfd event{pipe.descriptor(), POLLIN, 0};
  return poll(&event, 1, 0) == 1;
}

TEST(WakeupPipe, WakesUntilItIsCleared) {
  const WakeupPipe pipe;
  EXPECT_FALSE(wakes(pipe));
  for (int i = 0; i < 1000; ++i) pipe.wake();
  EXPECT_TRUE(wakes(pipe));
  pipe.clear();
  EXPECT_FALSE(wakes(pipe));
}

TEST(WakeupPipe, AFullPipeDoesNotHoldUpItsWriter) {
  const WakeupPipe pipe;
  for (int i = 0; i < 100'000; ++i) pipe.wake();  // a pipe holds fewer bytes
  EXPECT_TRUE(wakes(pipe));
  pipe.clear();
  EXPECT_FALSE(wakes(pipe));
}

TEST(WakeupPipe, IsReachedThroughItsNumberAndIdentity) {
  const WakeupPipe pipe;
  const WakeupPipe far(getpid(), pipe.descriptor(), pipe.identity());
  far.wake();
  EXPECT_TRUE(wakes(pipe));
}

TEST(WakeupPipe, AWriteToOneWhoseOwnerIsGoneEndsNobody) {
  auto pipe = std::make_unique<WakeupPipe>();
  const WakeupPipe far(getpid(), pipe->descriptor(), pipe->identity());
  pipe.reset();
  far.wake();  // a signal would end this process
}

TEST(WakeupPipe, AnotherDescriptorOfThatNumberIsRefused) {
  const WakeupPipe pipe, other;
  EXPECT_THROW(WakeupPipe(getpid(), pipe.descriptor(), other.identity()), Error);
  EXPECT_THROW(WakeupPipe(getpid(), 1'000'000, 1), Error);
}

}  // namespace
}  // namespace pw
