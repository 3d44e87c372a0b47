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
    ASSERT_EQ(pw_region_allocate(context_, {PW_HOST, 0}, 4096, &region_), PW_OK) << pw_error_message();
  }
  void TearDown() override {
    pw_region_free(region_);
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
  EXPECT_EQ(pw_get_block(context_, region_, nullptr, nullptr, nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_get_block ");
  EXPECT_EQ(pw_context_create(nullptr, nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_context_create ");
  EXPECT_EQ(pw_team_from_launcher(nullptr), PW_INVALID_ARGUMENT);
  expect_message("pw_team_from_launcher ");
  EXPECT_EQ(pw_team_all_gather(team_, nullptr, nullptr, 1, 0), PW_INVALID_ARGUMENT);
  expect_message("pw_team_all_gather ");
}

TEST_F(Api, TheHeaderAndTheLibraryAreOfOneVersion) {
  const std::string header = std::to_string(PW_VERSION_MAJOR) + "." + std::to_string(PW_VERSION_MINOR) + "." +
                             std::to_string(PW_VERSION_PATCH);
  EXPECT_EQ(pw_version(), header);
  EXPECT_EQ(pw_abi_version(), PW_ABI_VERSION);
  static_assert(PW_VERSION == PW_VERSION_MAJOR * 10000 + PW_VERSION_MINOR * 100 + PW_VERSION_PATCH);
}

// A program of another version gives structs of another size.
TEST_F(Api, StructsOfOtherSizes) {
  unsigned char key[PW_KEY_MAX];
  size_t length = 0;
  ASSERT_EQ(pw_region_key(region_, key, sizeof key, &length), PW_OK);
  pw_remote* remote = nullptr;
  ASSERT_EQ(pw_remote_import(context_, key, length, &remote), PW_OK);
  struct {
    pw_block known;
    uint64_t more;
  } newer{};
  newer.known.block_bytes = 8;
  pw_block block{};
  block.block_bytes = 8;
  const auto put = [&](const pw_block& to) {
    return pw_put_block(context_, remote, &to, region_, &block, nullptr);
  };
  EXPECT_EQ(put(newer.known), PW_OK);
  newer.known.size = sizeof newer;
  EXPECT_EQ(put(newer.known), PW_OK) << "newer, and uses nothing new";
  newer.more = 1;
  EXPECT_EQ(put(newer.known), PW_UNSUPPORTED);
  expect_message("members that this library");
  for (const size_t wrong : {size_t{0}, sizeof(pw_block) - 8, SIZE_MAX}) {
    newer.known.size = wrong;
    EXPECT_EQ(put(newer.known), PW_INVALID_ARGUMENT) << wrong;
    expect_message("set it to sizeof(pw_block)");
  }
  pw_notification notification{};
  notification.size = 8;
  EXPECT_EQ(pw_notify(context_, &notification), PW_INVALID_ARGUMENT);
  expect_message("sizeof(pw_notification)");
  EXPECT_EQ(pw_remote_free(remote), PW_OK);
}

TEST_F(Api, ValuesComeWithAStatusWhereTheyCanFail) {
  int lost = 7;
  EXPECT_EQ(pw_team_lost(team_, 1, &lost), PW_OUT_OF_RANGE);
  expect_message("ranks 0 to 0");
  EXPECT_EQ(pw_team_lost(team_, 0, &lost), PW_OK);
  EXPECT_EQ(lost, 0);
  uint64_t value = 7;
  EXPECT_EQ(pw_signal_value(nullptr, &value), PW_INVALID_ARGUMENT);
  EXPECT_EQ(pw_stream_free(nullptr, {}), PW_INVALID_ARGUMENT);
}

TEST_F(Api, FreeingNothingIsFine) {
  EXPECT_EQ(pw_team_free(nullptr), PW_OK);
  EXPECT_EQ(pw_context_free(nullptr), PW_OK);
  EXPECT_EQ(pw_region_free(nullptr), PW_OK);
  EXPECT_EQ(pw_remote_free(nullptr), PW_OK);
  EXPECT_EQ(pw_signal_free(nullptr), PW_OK);
  EXPECT_EQ(pw_request_free(nullptr), PW_OK);
  EXPECT_EQ(pw_plan_free(nullptr), PW_OK);
  EXPECT_EQ(pw_plan_builder_free(nullptr), PW_OK);
  EXPECT_EQ(pw_fifo_free(nullptr), PW_OK);
}

TEST_F(Api, ABuilderMakesOnePlan) {
  pw_plan_builder* builder = nullptr;
  ASSERT_EQ(pw_plan_builder_create(context_, {PW_HOST, 0}, &builder), PW_OK);
  pw_plan* plan = nullptr;
  ASSERT_EQ(pw_plan_builder_prepare(builder, PW_PREPARE_ALONE, &plan), PW_OK) << pw_error_message();
  EXPECT_EQ(pw_plan_start(plan, nullptr), PW_OK);
  EXPECT_EQ(pw_plan_finish(plan, PW_FOREVER), PW_OK);
  pw_plan* second = nullptr;
  EXPECT_EQ(pw_plan_builder_prepare(builder, PW_PREPARE_ALONE, &second), PW_INVALID_ARGUMENT);
  expect_message("create another one");
  EXPECT_EQ(pw_plan_builder_free(builder), PW_OK);
  EXPECT_EQ(pw_plan_free(plan), PW_OK);
}

}  // namespace
