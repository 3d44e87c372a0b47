// Which messages of an exchange are taken, kept and refused, whichever rank comes first.
#include <gtest/gtest.h>

#include <string>

#include "team/call_log.h"

namespace pw {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t begin(CallLog& book, CallKind kind = CallKind::plan) { return book.begin({kind, 0}).number; }
uint64_t begin_among(CallLog& book, std::vector<int> ranks) {
  return book.begin_among(CallKind::plan_among, std::move(ranks)).number;
}

/// Rank `from` writes to the exchange, which is in the place of its number where nothing else is said.
bool write(CallLog& book, int from, uint64_t number, const char* text) {
  return book.accept(from, {number, CallKind::plan, number, view_of(text)});
}

TEST(CallLog, LettersOfEachPartnerComeInStep) {
  CallLog book;
  const uint64_t number = begin(book);
  book.address(number, {1, 4});
  EXPECT_TRUE(write(book, 4, number, "first of 4"));
  EXPECT_TRUE(write(book, 4, number, "second of 4"));
  EXPECT_EQ(book.missing(number, {1, 4}), std::vector<int>{1});
  EXPECT_TRUE(write(book, 1, number, "first of 1"));
  const PeerMessages first = book.take(number, {1, 4});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(text_of(first[0].second), "first of 1");
  EXPECT_EQ(text_of(first[1].second), "first of 4");
  EXPECT_EQ(text_of(book.take(number, {4})[0].second), "second of 4");
}

TEST(CallLog, WhatComesBeforeItsMeetingIsKept) {
  CallLog book;
  EXPECT_TRUE(write(book, 3, 1, "early"));
  EXPECT_EQ(begin(book), 0u);
  EXPECT_EQ(begin(book), 1u);
  book.address(1, {3});
  EXPECT_TRUE(book.missing(1, {3}).empty());
  EXPECT_EQ(text_of(book.take(1, {3})[0].second), "early");
}

TEST(CallLog, EachSetOfRanksCountsItsOwn) {
  CallLog here, there;
  EXPECT_EQ(begin(here), 0u);
  const uint64_t first = begin_among(here, {2, 0});
  EXPECT_EQ(begin_among(there, {0, 2}), first) << "the order does not matter, nor exchanges of others";
  EXPECT_NE(begin_among(here, {0, 1}), first);
  EXPECT_EQ(begin(here), 1u);
  EXPECT_EQ(begin_among(here, {0, 2}), first + 1);
  EXPECT_TRUE(write(there, 2, first + 1, "early")) << "it is still to begin there";
  there.end(first);
  EXPECT_FALSE(write(there, 2, first, "late"));
  EXPECT_EQ(begin_among(there, {0, 2}), first + 1);
  there.address(first + 1, {2});
  EXPECT_TRUE(there.missing(first + 1, {2}).empty());
}

TEST(CallLog, WhoCountsThisRankAsAPartnerIsHeardInTheFirstExchangeAlone) {
  CallLog book;
  const uint64_t number = begin(book);
  EXPECT_TRUE(write(book, 7, number, "of no partner"));
  const PeerMessages first = book.take(number, {});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].first, 7);
  EXPECT_TRUE(write(book, 7, number, "of a partner by now"));
  EXPECT_FALSE(write(book, 8, number, "too late"));
}

TEST(CallLog, LettersToAMeetingThatIsOverAreRefused) {
  CallLog book;
  const uint64_t number = begin(book);
  book.end(number);
  EXPECT_FALSE(write(book, 1, number, "late"));
}

TEST(CallLog, WhoWritesToOneThatFailedHearsOfTheFailureAlone) {
  CallLog book;
  const uint64_t number = begin(book);
  book.abort(number, Error(PW_DENIED, "no"));
  book.end(number);
  EXPECT_TRUE(write(book, 1, number, "late"));
}

std::string why_ended(const CallLog& book, uint64_t number) {
  try {
    book.check(number);
  } catch (const AbortedElsewhere& why) {
    return std::string("all: ") + why.what();
  } catch (const Error& why) {
    return std::string("this rank: ") + why.what();
  }
  return "";
}

TEST(CallLog, AnObjectionIsNewsOnceAndMayComeBeforeTheMeeting) {
  CallLog book;
  EXPECT_TRUE(book.abort(0, Error(PW_DENIED, "no")));
  EXPECT_FALSE(book.abort(0, Error(PW_DENIED, "no again")));
  const uint64_t number = begin(book);
  EXPECT_TRUE(book.ended(number));
  EXPECT_EQ(why_ended(book, number), "all: no");
}

// Others may hear of it from this rank alone.
TEST(CallLog, AnObjectionToAMeetingThatIsOverHereIsNewsAndKept) {
  CallLog book;
  const uint64_t number = begin(book);
  book.end(number);
  EXPECT_TRUE(book.abort(number, Error(PW_DENIED, "no")));
  EXPECT_FALSE(book.abort(number, Error(PW_DENIED, "no")));
  EXPECT_STREQ(book.aborts().at(number).what(), "no");
}

TEST(CallLog, WhatOneRankWasToldYieldsToWhatAllKnow) {
  CallLog book;
  const uint64_t number = begin(book);
  EXPECT_EQ(why_ended(book, number), "");
  book.refuse(number, Error(PW_INVALID_ARGUMENT, "to you alone"));
  book.refuse(number, Error(PW_INVALID_ARGUMENT, "once more"));
  EXPECT_EQ(why_ended(book, number), "this rank: to you alone");
  EXPECT_TRUE(book.abort(number, Error(PW_DENIED, "to all")));
  EXPECT_EQ(why_ended(book, number), "all: to all");
}

TEST(CallLog, ARefusalOfAMeetingThatIsOverChangesNothing) {
  CallLog book;
  const uint64_t number = begin(book);
  book.end(number);
  book.refuse(number, Error(PW_INVALID_ARGUMENT, "late"));
  book.refuse(7, Error(PW_INVALID_ARGUMENT, "never begun"));
  EXPECT_TRUE(book.aborts().empty());
  EXPECT_FALSE(book.ended(begin(book)));
}

TEST(CallLog, AnObjectionAfterTheLastLetterIsStillHeard) {
  CallLog book;
  const uint64_t number = begin(book);
  std::string reason;
  book.on_abort(number, [&](const Error& why) { reason = why.what(); });
  EXPECT_TRUE(book.abort(number, Error(PW_DENIED, "far away")));
  EXPECT_EQ(reason, "far away");
  reason.clear();
  book.on_abort(number, [&](const Error& why) { reason = why.what(); });
  EXPECT_EQ(reason, "far away");
}

std::string text_of(const CallLog::Conflict& conflict) {
  return std::to_string(conflict.number) + " " + name_of(conflict.call) + ", rank " +
         std::to_string(conflict.other) + " " + std::to_string(conflict.other_number & ~wire::kOfSome) + " " +
         name_of(conflict.other_call);
}

std::string conflict_of(const CallLog& book, int from, const wire::ExchangePart& part) {
  const auto conflict = book.conflict_with(from, part);
  return conflict ? text_of(*conflict) : "";
}

TEST(CallLog, ALetterToAnotherCallInTheSamePlaceConflictsWheneverItComes) {
  const wire::ExchangePart part{1, CallKind::plan, 1, {}};
  for (const CollectiveCall& call : {CollectiveCall{CallKind::halo, 0}, CollectiveCall{CallKind::barrier, 0},
                                     CollectiveCall{CallKind::all_gather, 8}}) {
    const std::string both = "1 " + name_of(call) + ", rank 2 1 prepare of a plan";
    CallLog book;
    begin(book);
    EXPECT_EQ(conflict_of(book, 2, part), "");
    ASSERT_TRUE(book.accept(2, part));
    const auto [number, conflicts] = book.begin(call);
    EXPECT_EQ(number, 1u);
    ASSERT_EQ(conflicts.size(), 1u);
    EXPECT_EQ(text_of(conflicts[0]), both);
    EXPECT_EQ(conflict_of(book, 2, part), both);
    EXPECT_EQ(book.holds(1), !through_server(call.kind));
    EXPECT_TRUE(book.begin({CallKind::plan, 0}).conflicts.empty()) << "the next is another";
  }
}

TEST(CallLog, ACallOfSomeRanksHasItsPlaceBetweenThoseOfAll) {
  CallLog here, there, third;
  for (CallLog* book : {&here, &there, &third}) begin(*book);
  const uint64_t number = begin_among(here, {0, 1});
  const wire::ExchangePart to_there = here.header_to(1, number);
  EXPECT_EQ(conflict_of(there, 0, to_there), "") << "it may still come";
  there.accept(0, to_there);
  const auto [barrier, conflicts] = there.begin({CallKind::barrier, 0});
  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_EQ(conflicts[0].other_number, number);
  EXPECT_EQ(conflicts[0].number, barrier);
  EXPECT_EQ(name_of(conflicts[0].other_call), "prepare_among of a plan");
  EXPECT_NE(conflict_of(there, 0, to_there), "") << "whichever comes first";
  // Exchanges in which a rank takes no part do not count for it.
  const uint64_t next = begin(here);
  EXPECT_EQ(here.header_to(2, next).place, 1u);
  EXPECT_EQ(here.header_to(1, next).place, 2u);
  begin(third);
  EXPECT_EQ(conflict_of(third, 0, here.header_to(2, next)), "");
}

TEST(CallLog, ListsOfRanksThatDifferConflict) {
  CallLog here, there;
  const uint64_t number = begin_among(here, {0, 1});
  begin_among(there, {0, 1, 2});
  EXPECT_NE(conflict_of(there, 0, here.header_to(1, number)), "");
}

TEST(CallLog, WhatHasFailedConflictsNoMore) {
  CallLog book;
  book.abort(0, Error(PW_DENIED, "no"));
  EXPECT_TRUE(book.begin({CallKind::barrier, 0}).conflicts.empty());
  EXPECT_EQ(conflict_of(book, 2, {0, CallKind::plan, 0, {}}), "");
}

// The book forgets calls, but not those that it still holds.
TEST(CallLog, ALateLetterToAnOldMeetingOfAnotherKindConflicts) {
  CallLog book;
  const uint64_t old = begin(book, CallKind::halo);
  for (int call = 0; call < 10'000; ++call) book.end(begin(book));
  EXPECT_EQ(conflict_of(book, 1, {old, CallKind::halo, 0, {}}), "");
  EXPECT_NE(conflict_of(book, 1, {old, CallKind::plan, 0, {}}), "");
}

}  // namespace
}  // namespace pw
