// Secrets as text, and those that are made of one.
#include <gtest/gtest.h>

#include "base/secret.h"
#include "base/status.h"

namespace pw {
namespace {

constexpr const char* kText = "000102030405060708090a0b0c0d0eff";

TEST(BaseSecret, IsReadAsItIsWritten) { EXPECT_EQ(to_hex(parse_secret(kText, "it")), kText); }

TEST(BaseSecret, IsNotShownWhereItIsWrong) {
  for (const char* text : {"", "00", "000102030405060708090a0b0c0d0efg", "000102030405060708090a0b0c0d0eff0"})
    try {
      parse_secret(text, "PEERWAY_X");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("PEERWAY_X must be 32 hexadecimal digits"), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find("0102"), std::string::npos);
    }
}

TEST(BaseSecret, IsAnotherForEachPurpose) {
  const Secret secret = parse_secret(kText, "it");
  EXPECT_EQ(derive_secret(secret, "a"), derive_secret(secret, "a"));
  EXPECT_NE(derive_secret(secret, "a"), derive_secret(secret, "b"));
  EXPECT_NE(derive_secret(secret, "a"), derive_secret(Secret{}, "a"));
}

}  // namespace
}  // namespace pw
