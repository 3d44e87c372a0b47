// The configuration table: where a value comes from, what is refused and how it is told.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/config.h"
#include "base/config_value.h"
#include "base/status.h"

namespace pw {
namespace {

/// An own configuration folder for one test, and no PEERWAY_ variable left behind.
class Config : public ::testing::Test {
 protected:
  void SetUp() override {
    home_ = ::testing::TempDir() + "peerway-config-XXXXXX";
    ASSERT_NE(::mkdtemp(home_.data()), nullptr);
    ::setenv("XDG_CONFIG_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(home_);
    for (const char* name : {"XDG_CONFIG_HOME", "PEERWAY_LOG", "PEERWAY_TIMEOUT", "PEERWAY_CACHE"})
      ::unsetenv(name);
  }
  void write(const std::string& text) {
    std::filesystem::create_directories(home_ + "/peerway");
    std::ofstream(home_ + "/peerway/config.json") << text;
  }
  static std::string refusal(auto&& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_BAD_CONFIG);
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
  }
  std::string home_;
};

TEST_F(Config, EveryEntryHasADistinctNameHelpAndAValidDefault) {
  std::set<std::string_view> names;
  for (const ConfigEntry& entry : config_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.help.empty()) << entry.name;
    if (!entry.default_value.empty()) {
      EXPECT_NO_THROW(parse_config_value(entry.type, entry.default_value, "default"));
    }
  }
}

TEST_F(Config, EnvironmentBeatsFileBeatsDefault) {
  EXPECT_EQ(config_number("timeout"), 60'000'000'000u);
  write(R"({"log": "debug", "timeout": 2.5, "strict": true})");
  ::setenv("XDG_CONFIG_HOME", (home_ + "/.").c_str(), 1);  // the file is read once for each place
  EXPECT_EQ(config("log"), "debug");
  EXPECT_EQ(config("strict"), "on");
  EXPECT_EQ(config_number("timeout"), 2'500'000'000u);
  ::setenv("PEERWAY_LOG", "error", 1);
  EXPECT_EQ(config("log"), "error");
}

TEST_F(Config, AWrongValueIsNamedWithItsOriginAndWhatIsAllowed) {
  ::setenv("PEERWAY_LOG", "loud", 1);
  EXPECT_EQ(refusal([] { config("log"); }),
            "PEERWAY_LOG is 'loud'; it must be one of error, warning, info, debug");
  ::setenv("PEERWAY_LOG", "info", 1);
  ::setenv("PEERWAY_TIMEOUT", "-1", 1);
  EXPECT_NE(refusal([] { check_config(); }).find("PEERWAY_TIMEOUT is '-1'; it must be a number of seconds"),
            std::string::npos);
}

TEST_F(Config, AnUnknownKeyInTheFileIsRefusedWithTheNearestName) {
  write(R"({"timeot": 3})");
  const std::string message = refusal([] { config("log"); });
  EXPECT_NE(message.find("'timeot' in " + home_), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean 'timeout'?"), std::string::npos) << message;
}

TEST_F(Config, AFileThatIsNoJsonObjectIsRefused) {
  write("[1, 2");
  EXPECT_NE(refusal([] { config("log"); }).find("must be one JSON object"), std::string::npos);
}

TEST_F(Config, BytesHaveSuffixesAndLimits) {
  EXPECT_EQ(parse_config_value("bytes", "64K", "x"), 65536u);
  EXPECT_EQ(parse_config_value("bytes", "3G", "x"), 3u << 30);
  EXPECT_EQ(parse_config_value("count", "7", "x"), 7u);
  for (const char* bad : {"", "K", "1KB", "-1", "1.5M", "99999999999G", "18446744073709551616"})
    EXPECT_THROW(parse_config_value("bytes", bad, "x"), Error) << bad;
  EXPECT_THROW(parse_config_value("count", "1K", "x"), Error);
  for (const char* bad : {"nan", "inf", "0", "1e9", "1s"})
    EXPECT_THROW(parse_config_value("seconds", bad, "x"), Error) << bad;
  EXPECT_THROW(parse_config_value("path", "relative/file", "x"), Error);
}

TEST_F(Config, AProductDeclaresItsSettingsAndOnlyThenAreTheyChecked) {
  ::setenv("PEERWAY_TEST_COLOUR", "red", 1);
  ::setenv("PEERWAY_TEST_COLUOR", "red", 1);
  EXPECT_NO_THROW(check_config());
  EXPECT_THROW(config("test_colour"), Error);
  static constexpr ConfigEntry settings[] = {{"test_colour", "choice:red|blue", "blue", "A colour."}};
  declare_settings("test", settings);
  EXPECT_EQ(config("test_colour"), "red");
  EXPECT_EQ(refusal([] { check_config(); }),
            "PEERWAY_TEST_COLUOR in the environment is not a setting; did you mean PEERWAY_TEST_COLOUR?");
  ::unsetenv("PEERWAY_TEST_COLUOR");
  ::setenv("PEERWAY_TEST_COLOUR", "green", 1);
  EXPECT_EQ(refusal([] { check_config(); }), "PEERWAY_TEST_COLOUR is 'green'; it must be one of red, blue");
  ::unsetenv("PEERWAY_TEST_COLOUR");
}

TEST_F(Config, AnUnknownVariableIsRefusedAndThoseThatAreNoSettingsAreNot) {
  ::setenv("PEERWAY_RANK", "0", 1);
  ::setenv("PEERWAY_BUILD_WHEELS", "/wheels", 1);
  EXPECT_NO_THROW(check_config());
  ::setenv("PEERWAY_LOGG", "info", 1);
  EXPECT_EQ(refusal([] { check_config(); }),
            "PEERWAY_LOGG in the environment is not a setting; did you mean PEERWAY_LOG?");
  ::unsetenv("PEERWAY_LOGG");
  ::setenv("PEERWAY_BANANA", "1", 1);
  EXPECT_EQ(refusal([] { check_config(); }),
            "PEERWAY_BANANA in the environment is not a setting; `peerway config` lists them all; "
            "unset it");
  ::unsetenv("PEERWAY_BANANA");
  ::unsetenv("PEERWAY_RANK");
  ::unsetenv("PEERWAY_BUILD_WHEELS");
  ::unsetenv("PEERWAY_BUILD_WHEELS");
}

TEST(NearestName, KnowsWhatIsNear) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("WIAT", "WAIT"), 1u);
  const std::string_view names[] = {"timeout", "log"};
  EXPECT_EQ(nearest_name("timout", names), "timeout");
  EXPECT_EQ(nearest_name("lgo", names), "log");
  for (const char* other : {"banana", "foo", "loud", "", "l"})
    EXPECT_EQ(nearest_name(other, names), "") << other;
}

}  // namespace
}  // namespace pw
