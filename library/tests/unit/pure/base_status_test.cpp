// The C boundary: whatever is thrown inside comes out as a status with a message.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "base/status.h"

namespace pw {
namespace {

pw_status guarded(const auto& thrown) {
  return catch_errors([&]() -> pw_status { throw thrown; });
}

TEST(CatchErrors, TurnsWhateverIsThrownIntoAStatus) {
  EXPECT_EQ(catch_errors([] { return PW_TIMEOUT; }), PW_TIMEOUT);
  EXPECT_EQ(guarded(Error(PW_STALE_KEY, "the key")), PW_STALE_KEY);
  EXPECT_STREQ(last_error_message(), "the key");
  EXPECT_EQ(guarded(std::bad_alloc()), PW_NO_MEMORY);
  EXPECT_EQ(guarded(std::runtime_error("odd")), PW_INTERNAL);
  EXPECT_NE(std::string(last_error_message()).find("odd"), std::string::npos);
}

// A C++ program's broadcast callback may throw anything.
TEST(CatchErrors, LetsNoExceptionOfAnotherKindEndTheProcess) {
  EXPECT_EQ(guarded(7), PW_INTERNAL);
  EXPECT_NE(std::string(last_error_message()).find("exception"), std::string::npos);
}

// A program that frees what it has, or leaves its team, by atexit.
TEST(CatchErrors, WhatFailsWhileTheProcessEndsHasItsMessage) {
  EXPECT_EXIT(
      {
        static_cast<void>(fail(PW_TIMEOUT, "a message that is too long to lie in the string itself"));
        static_cast<void>(std::atexit([] {
          for (int time = 0; time < 2; ++time)
            static_cast<void>(
                fail(PW_CLOSED, "another one that is too long to lie in the string itself, too"));
          if (std::string(last_error_message()).starts_with("another")) std::_Exit(7);
        }));
        std::exit(0);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace pw
