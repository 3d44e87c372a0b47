// The C functions of contexts: what they refuse at the border, in the words of the function that was called.
#include <gtest/gtest.h>

#include <string>

#include "peerway/peerway.h"

namespace {

class Api : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pw_team_create(0, 1, nullptr, nullptr, &team_), PW_OK) << pw_error_message();
    ASSERT_EQ(pw_context_create(team_, &context_), PW_OK) << pw_error_message();
    ASSERT_EQ(pw_allocate(context_, {PW_HOST, 0}, 4096, &region_), PW_OK) << pw_error_message();
  }
  void TearDown() override {
    pw_region_close(region_);
    pw_context_free(context_);
    pw_team_free(team_);
  }
  static void expect_message(const char* part) {
    EXPECT_NE(std::string(pw_error_message()).find(part), std::string::npos) << pw_error_message();
  }
  pw_team* team_ = nullptr;
  pw_context* context_ = nullptr;
  pw_region* region_ = nullptr;
};

TEST_F(Api, AKeyNeedsABuffer) {
  size_t length = 0;
  EXPECT_EQ(pw_region_key(region_, nullptr, 0, &length), PW_OUT_OF_RANGE);
  EXPECT_GT(length, 0u);
  EXPECT_EQ(pw_region_key(region_, nullptr, PW_KEY_MAX, &length), PW_INVALID_ARGUMENT);
  expect_message("pw_region_key");
}

TEST_F(Api, ANullPointerIsToldWithTheFunctionItWasGivenTo) {
  EXPECT_EQ(pw_put(context_, nullptr, 0, region_, 0, 8, nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_put ");
  EXPECT_EQ(pw_put_block(context_, nullptr, nullptr, region_, nullptr, nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_put_block ");
  EXPECT_EQ(pw_get_block(context_, nullptr, nullptr, region_, nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_get_block ");
  EXPECT_EQ(pw_context_create(nullptr, nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_context_create ");
  EXPECT_EQ(pw_team_from_launcher(nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_team_from_launcher ");
  EXPECT_EQ(pw_team_all_gather(team_, nullptr, 1, nullptr, 0), PW_INVALID_ARGUMENT);
  expect_message("pw_team_all_gather ");
}

}  // namespace
