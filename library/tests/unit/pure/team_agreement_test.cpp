// How ranks end alike when one of them cannot go on.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "team/agreement.h"

namespace pw {
namespace {

Bytes bytes_of(const char* text) {
  const ByteView view = view_of(text);
  return {view.begin(), view.end()};
}

Error error_of(const std::vector<Bytes>& parts, const AbortReason& own) {
  try {
    open_parts(parts, own, "make it");
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nobody objected";
  return {PW_OK, ""};
}

TEST(Agreement, EveryRankGetsWhatAllTell) {
  const std::vector<Bytes> expected = {bytes_of("one"), {}, bytes_of("three")};
  std::vector<Bytes> parts;
  for (const Bytes& part : expected) parts.push_back(pack_part({}, part));
  EXPECT_EQ(open_parts(parts, {}, "make it"), expected);
}

TEST(Agreement, AnObjectionIsEverybodysWithItsStatus) {
  const AbortReason abort_reason = Error(PW_OUT_OF_RANGE, "the region has 8 bytes");
  const std::vector<Bytes> parts = {pack_part({}, {}), pack_part({}, {}), pack_part(abort_reason, {})};
  const Error own = error_of(parts, abort_reason), other = error_of(parts, {});
  EXPECT_EQ(own.status(), PW_OUT_OF_RANGE);
  EXPECT_STREQ(own.what(), "the region has 8 bytes");
  EXPECT_EQ(other.status(), PW_OUT_OF_RANGE);
  EXPECT_STREQ(other.what(), "rank 2 cannot make it: the region has 8 bytes");
}

TEST(Agreement, ARankWithAnObjectionOfItsOwnGivesThat) {
  const AbortReason first = Error(PW_OUT_OF_RANGE, "this");
  const AbortReason second = Error(PW_INVALID_ARGUMENT, "that");
  const std::vector<Bytes> parts = {pack_part(first, {}), pack_part(second, {}), pack_part({}, {})};
  EXPECT_STREQ(error_of(parts, second).what(), "that");
  EXPECT_STREQ(error_of(parts, {}).what(), "rank 0 cannot make it: this");
}

TEST(Agreement, ALongObjectionIsCut) {
  const AbortReason abort_reason = Error(PW_INTERNAL, std::string(50000, 'x'));
  EXPECT_LT(std::string(error_of({pack_part(abort_reason, {})}, {}).what()).size(), 5000u);
}

TEST(Agreement, AnExceptionOfAnyTypeIsAnObjection) {
  AbortReason none_left, foreign, odd;
  attempt(none_left, [] { throw std::bad_alloc(); });
  attempt(foreign, [] { throw std::out_of_range("vector"); });
  attempt(odd, [] { throw 7; });
  EXPECT_EQ(none_left->status(), PW_NO_MEMORY);
  EXPECT_EQ(foreign->status(), PW_INTERNAL);
  EXPECT_STREQ(foreign->what(), "vector");
  EXPECT_EQ(odd->status(), PW_INTERNAL);
}

TEST(Agreement, OthersHearWhoseObjectionItIs) {
  const Error error = abort_reason_for(Error(PW_OUT_OF_RANGE, "the region has 8 bytes"), 2, "make it");
  EXPECT_EQ(error.status(), PW_OUT_OF_RANGE);
  EXPECT_STREQ(error.what(), "rank 2 cannot make it: the region has 8 bytes");
  EXPECT_LT(std::string(abort_reason_for(Error(PW_INTERNAL, std::string(50000, 'x')), 0, "do").what()).size(),
            4096u);
}

TEST(Agreement, WhatFailsFirstIsTheObjection) {
  AbortReason abort_reason;
  int runs = 0;
  attempt(abort_reason, [&] { ++runs; });
  EXPECT_FALSE(abort_reason);
  attempt(abort_reason, [] { throw Error(PW_NO_MEMORY, "first"); });
  attempt(abort_reason, [&] { ++runs; });
  ASSERT_TRUE(abort_reason);
  EXPECT_STREQ(abort_reason->what(), "first");
  EXPECT_EQ(runs, 1) << "nothing is tried after an abort";
}

}  // namespace
}  // namespace pw
