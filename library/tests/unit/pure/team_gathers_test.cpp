// The bootstrap server's book of all_gathers, as data: no sockets, no threads.
#include <gtest/gtest.h>

#include "team/gathers.h"

namespace pw {
namespace {

std::vector<Gathers::Answer> give(Gathers& gathers, int rank, uint64_t sequence, std::string_view text) {
  return gathers.contribute(rank, {sequence, CallKind::all_gather, view_of(text)});
}

TEST(Gathers, CompletesInRankOrderWhateverTheOrderOfArrival) {
  Gathers gathers(3);
  EXPECT_TRUE(give(gathers, 2, 0, "cc").empty());
  EXPECT_TRUE(give(gathers, 0, 0, "aa").empty());
  const auto answers = give(gathers, 1, 0, "bb");
  ASSERT_EQ(answers.size(), 3u);
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer.complete);
    const wire::Numbered part = wire::parse_numbered(*answer.result);
    EXPECT_EQ(part.sequence, 0u);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(part.data.data()), part.data.size()), "aabbcc");
  }
}

TEST(Gathers, ALossFailsWhatWaitsForItAndWhatComesLater) {
  Gathers gathers(3);
  give(gathers, 0, 0, "a");
  const auto answers = gathers.lose(2, "rank 2 is lost");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].rank, 0);
  EXPECT_EQ(answers[0].failure.refusal.status, PW_PEER_LOST);
  EXPECT_NE(answers[0].failure.refusal.text.find("rank 2 is lost"), std::string::npos);
  EXPECT_EQ(give(gathers, 1, 0, "b").at(0).failure.refusal.status, PW_PEER_LOST);
  EXPECT_EQ(give(gathers, 1, 1, "b").at(0).failure.refusal.status, PW_PEER_LOST);
}

TEST(Gathers, ARankThatGaveAndThenDiedDoesNotFailThatExchange) {
  Gathers gathers(2);
  give(gathers, 1, 0, "b");
  EXPECT_TRUE(gathers.lose(1, "rank 1 is lost").empty());
  const auto answers = give(gathers, 0, 0, "a");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].complete);
  EXPECT_FALSE(give(gathers, 0, 1, "a").at(0).complete);
}

TEST(Gathers, DifferentSizesFailForAllAndSayWhoGaveWhat) {
  Gathers gathers(3);
  give(gathers, 0, 0, "aa");
  const auto answers = give(gathers, 1, 0, "b");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].failure.refusal.status, PW_INVALID_ARGUMENT);
  EXPECT_NE(answers[0].failure.refusal.text.find("rank 1 gave 1 bytes and rank 0 gave 2"), std::string::npos);
  EXPECT_EQ(give(gathers, 2, 0, "cc").size(), 1u);
  EXPECT_TRUE(give(gathers, 0, 1, "x").empty());  // the next one is not touched
}

TEST(Gathers, PartsOfDifferentLengthsComeInOneExchange) {
  Gathers gathers(3);
  const auto part = [&](int rank, std::string_view text) {
    return gathers.contribute(rank, {0, CallKind::parts, view_of(text)});
  };
  EXPECT_TRUE(part(2, "three").empty());
  EXPECT_TRUE(part(0, "").empty());
  const auto answers = part(1, "two");
  ASSERT_EQ(answers.size(), 3u);
  ASSERT_TRUE(answers[0].complete);
  ByteReader reader(wire::parse_numbered(*answers[0].result).data, "the parts");
  EXPECT_EQ(reader.get_text(9), "");
  EXPECT_EQ(reader.get_text(9), "two");
  EXPECT_EQ(reader.get_text(9), "three");
  reader.end();
}

TEST(Gathers, DifferentCallsFailForAllAndAreBothNamed) {
  Gathers gathers(3);
  EXPECT_TRUE(give(gathers, 0, 0, "aa").empty());
  const auto answers = gathers.contribute(1, {0, CallKind::parts, view_of("bbb")});
  ASSERT_EQ(answers.size(), 2u);
  const std::string& text = answers[0].failure.refusal.text;
  EXPECT_NE(text.find("rank 1 is in all_gather of 3 bytes with lengths that may differ"), std::string::npos);
  EXPECT_NE(text.find("rank 0 is in all_gather of 2 bytes where"), std::string::npos);
  EXPECT_EQ(gathers.contribute(2, {0, CallKind::barrier, {}}).at(0).failure.refusal.text, text);
}

TEST(Gathers, WhatRanksSayToPartnersIsOnlyCompared) {
  Gathers gathers(3);
  const auto call = [&](int rank, uint64_t sequence, CallKind kind) {
    return gathers.contribute(rank, {sequence, kind, {}});
  };
  EXPECT_TRUE(call(0, 0, CallKind::plan).empty());
  EXPECT_TRUE(call(1, 0, CallKind::plan).empty());
  EXPECT_TRUE(gathers.lose(2, "rank 2 is lost").empty()) << "the others go on without it";
  EXPECT_TRUE(call(0, 1, CallKind::halo).empty());
  const auto answers = call(1, 1, CallKind::barrier);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].failure.refusal.status, PW_INVALID_ARGUMENT);
  EXPECT_NE(
      answers[1].failure.refusal.text.find("rank 0 is in creation of a halo where rank 1 is in barrier"),
      std::string::npos)
      << answers[1].failure.refusal.text;
}

TEST(Gathers, ARankThatEndsACollectiveEndsItForThoseWhoNeedTheHubsData) {
  Gathers gathers(2);
  const wire::Failure no{0, {PW_DENIED, "no"}}, later{1, {PW_DENIED, "not yet"}};
  give(gathers, 0, 0, "a");
  const auto answers = gathers.abort(no);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].failure.refusal.text, "no");
  EXPECT_TRUE(gathers.abort(no).empty()) << "once";
  EXPECT_EQ(give(gathers, 1, 0, "b").at(0).failure.refusal.text, "no");
  EXPECT_TRUE(gathers.abort(no).empty()) << "it is over";
  EXPECT_TRUE(gathers.abort(later).empty());
  EXPECT_EQ(give(gathers, 1, 1, "b").at(0).failure.refusal.text, "not yet");
  EXPECT_EQ(give(gathers, 0, 1, "a").at(0).failure.refusal.text, "not yet");
  give(gathers, 0, 2, "a");
  EXPECT_TRUE(give(gathers, 1, 2, "b").at(0).complete);
}

TEST(Gathers, AWrongNumberIsRefused) {
  Gathers gathers(2);
  EXPECT_THROW(give(gathers, 0, 1, "a"), Error);
  give(gathers, 0, 0, "a");
  EXPECT_THROW(give(gathers, 0, 0, "a"), Error);
}

}  // namespace
}  // namespace pw
