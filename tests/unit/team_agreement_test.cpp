// How ranks end alike when one of them cannot go on.
#include <gtest/gtest.h>

#include <string>

#include "team/agreement.h"

namespace pw {
namespace {

Bytes bytes_of(const char* text) {
  const ByteView view = view_of(text);
  return {view.begin(), view.end()};
}

Error error_of(const std::vector<Bytes>& parts, const Refusal& own) {
  try {
    open_parts(parts, own, "make it");
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nobody refused";
  return {PW_OK, ""};
}

TEST(Agreement, EveryRankGetsWhatAllTell) {
  const std::vector<Bytes> told = {bytes_of("one"), {}, bytes_of("three")};
  std::vector<Bytes> parts;
  for (const Bytes& part : told) parts.push_back(pack_part({}, part));
  EXPECT_EQ(open_parts(parts, {}, "make it"), told);
}

TEST(Agreement, ARefusalIsEverybodysWithItsStatus) {
  const Refusal refusal = Error(PW_OUT_OF_RANGE, "peerway: the region has 8 bytes");
  const std::vector<Bytes> parts = {pack_part({}, {}), pack_part({}, {}), pack_part(refusal, {})};
  const Error own = error_of(parts, refusal), other = error_of(parts, {});
  EXPECT_EQ(own.status(), PW_OUT_OF_RANGE);
  EXPECT_STREQ(own.what(), "peerway: the region has 8 bytes");
  EXPECT_EQ(other.status(), PW_OUT_OF_RANGE);
  EXPECT_STREQ(other.what(), "peerway: rank 2 cannot make it: the region has 8 bytes");
}

TEST(Agreement, ARankWithARefusalOfItsOwnGivesThat) {
  const Refusal first = Error(PW_OUT_OF_RANGE, "peerway: this");
  const Refusal second = Error(PW_INVALID_ARGUMENT, "peerway: that");
  const std::vector<Bytes> parts = {pack_part(first, {}), pack_part(second, {}), pack_part({}, {})};
  EXPECT_STREQ(error_of(parts, second).what(), "peerway: that");
  EXPECT_STREQ(error_of(parts, {}).what(), "peerway: rank 0 cannot make it: this");
}

TEST(Agreement, ALongRefusalIsCut) {
  const Refusal refusal = Error(PW_INTERNAL, std::string(50000, 'x'));
  EXPECT_LT(std::string(error_of({pack_part(refusal, {})}, {}).what()).size(), 5000u);
}

TEST(Agreement, WhatFailsFirstIsTheRefusal) {
  Refusal refusal;
  int runs = 0;
  attempt(refusal, [&] { ++runs; });
  EXPECT_FALSE(refusal);
  attempt(refusal, [] { throw Error(PW_NO_MEMORY, "first"); });
  attempt(refusal, [&] { ++runs; });
  ASSERT_TRUE(refusal);
  EXPECT_STREQ(refusal->what(), "first");
  EXPECT_EQ(runs, 1) << "nothing is tried after a refusal";
}

}  // namespace
}  // namespace pw
