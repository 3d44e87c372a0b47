// Which letters of a meeting are taken, kept and refused, whichever rank comes first.
#include <gtest/gtest.h>

#include <string>

#include "team/meetings.h"

namespace pw {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Meetings, LettersOfEachPartnerComeInStep) {
  Meetings book;
  const uint64_t number = book.begin();
  book.address(number, {1, 4});
  EXPECT_TRUE(book.letter(4, number, view_of("first of 4")));
  EXPECT_TRUE(book.letter(4, number, view_of("second of 4")));
  EXPECT_EQ(book.missing(number, {1, 4}), std::vector<int>{1});
  EXPECT_TRUE(book.letter(1, number, view_of("first of 1")));
  const Letters first = book.take(number, {1, 4});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(text_of(first[0].second), "first of 1");
  EXPECT_EQ(text_of(first[1].second), "first of 4");
  EXPECT_EQ(text_of(book.take(number, {4})[0].second), "second of 4");
}

TEST(Meetings, WhatComesBeforeItsMeetingIsKept) {
  Meetings book;
  EXPECT_TRUE(book.letter(3, 1, view_of("early")));
  EXPECT_EQ(book.begin(), 0u);
  EXPECT_EQ(book.begin(), 1u);
  book.address(1, {3});
  EXPECT_TRUE(book.missing(1, {3}).empty());
  EXPECT_EQ(text_of(book.take(1, {3})[0].second), "early");
}

TEST(Meetings, EachSetOfRanksCountsItsOwn) {
  Meetings here, there;
  EXPECT_EQ(here.begin(), 0u);
  const uint64_t first = here.begin_among({2, 0});
  EXPECT_EQ(there.begin_among({0, 2}), first) << "the order does not matter, nor meetings of others";
  EXPECT_NE(here.begin_among({0, 1}), first);
  EXPECT_EQ(here.begin(), 1u);
  EXPECT_EQ(here.begin_among({0, 2}), first + 1);
  EXPECT_TRUE(there.letter(2, first + 1, view_of("early"))) << "it is still to begin there";
  there.end(first);
  EXPECT_FALSE(there.letter(2, first, view_of("late")));
  EXPECT_EQ(there.begin_among({0, 2}), first + 1);
  there.address(first + 1, {2});
  EXPECT_TRUE(there.missing(first + 1, {2}).empty());
}

TEST(Meetings, WhoCountsThisRankAsAPartnerIsHeardInTheFirstExchangeAlone) {
  Meetings book;
  const uint64_t number = book.begin();
  EXPECT_TRUE(book.letter(7, number, view_of("a stranger")));
  const Letters first = book.take(number, {});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].first, 7);
  EXPECT_TRUE(book.letter(7, number, view_of("no stranger any more")));
  EXPECT_FALSE(book.letter(8, number, view_of("too late")));
}

TEST(Meetings, LettersToAMeetingThatIsOverAreRefused) {
  Meetings book;
  const uint64_t number = book.begin();
  book.end(number);
  EXPECT_FALSE(book.letter(1, number, view_of("late")));
}

TEST(Meetings, WhoWritesToOneThatFailedHearsOfTheFailureAlone) {
  Meetings book;
  const uint64_t number = book.begin();
  book.object(number, Error(PW_DENIED, "no"));
  book.end(number);
  EXPECT_TRUE(book.letter(1, number, view_of("late")));
}

std::string why_ended(const Meetings& book, uint64_t number) {
  try {
    book.check(number);
  } catch (const OtherObjected& why) {
    return std::string("all: ") + why.what();
  } catch (const Error& why) {
    return std::string("this rank: ") + why.what();
  }
  return "";
}

TEST(Meetings, AnObjectionIsNewsOnceAndMayComeBeforeTheMeeting) {
  Meetings book;
  EXPECT_TRUE(book.object(0, Error(PW_DENIED, "no")));
  EXPECT_FALSE(book.object(0, Error(PW_DENIED, "no again")));
  const uint64_t number = book.begin();
  EXPECT_TRUE(book.ended(number));
  EXPECT_EQ(why_ended(book, number), "all: no");
}

// Others may hear of it from this rank alone.
TEST(Meetings, AnObjectionToAMeetingThatIsOverHereIsNewsAndKept) {
  Meetings book;
  const uint64_t number = book.begin();
  book.end(number);
  EXPECT_TRUE(book.object(number, Error(PW_DENIED, "no")));
  EXPECT_FALSE(book.object(number, Error(PW_DENIED, "no")));
  EXPECT_STREQ(book.objections().at(number).what(), "no");
}

TEST(Meetings, WhatOneRankWasToldYieldsToWhatAllKnow) {
  Meetings book;
  const uint64_t number = book.begin();
  EXPECT_EQ(why_ended(book, number), "");
  book.refuse(number, Error(PW_INVALID_ARGUMENT, "to you alone"));
  book.refuse(number, Error(PW_INVALID_ARGUMENT, "once more"));
  EXPECT_EQ(why_ended(book, number), "this rank: to you alone");
  EXPECT_TRUE(book.object(number, Error(PW_DENIED, "to all")));
  EXPECT_EQ(why_ended(book, number), "all: to all");
}

TEST(Meetings, ARefusalOfAMeetingThatIsOverChangesNothing) {
  Meetings book;
  const uint64_t number = book.begin();
  book.end(number);
  book.refuse(number, Error(PW_INVALID_ARGUMENT, "late"));
  book.refuse(7, Error(PW_INVALID_ARGUMENT, "never begun"));
  EXPECT_TRUE(book.objections().empty());
  EXPECT_FALSE(book.ended(book.begin()));
}

TEST(Meetings, AnObjectionAfterTheLastLetterIsStillHeard) {
  Meetings book;
  const uint64_t number = book.begin();
  std::string heard;
  book.on_objection(number, [&](const Error& why) { heard = why.what(); });
  EXPECT_TRUE(book.object(number, Error(PW_DENIED, "far away")));
  EXPECT_EQ(heard, "far away");
  heard.clear();
  book.on_objection(number, [&](const Error& why) { heard = why.what(); });
  EXPECT_EQ(heard, "far away");
}

}  // namespace
}  // namespace pw
