// Settings: where a value comes from, what is refused and how it is told.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/setting.h"
#include "base/setting_value.h"
#include "base/status.h"
#include "base/timeout.h"
#include "transport/transport.h"

namespace pw {
namespace {

/// An own configuration folder for one test, and no PEERWAY_ variable left behind.
class Settings : public ::testing::Test {
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

TEST_F(Settings, EveryEntryHasADistinctNameHelpAndAValidDefault) {
  std::set<std::string_view> names;
  for (const Setting* setting : all_settings()) {
    EXPECT_TRUE(names.insert(setting->name()).second) << setting->name();
    EXPECT_FALSE(setting->help().empty()) << setting->name();
    if (!setting->default_text().empty()) {
      EXPECT_NO_THROW(parse_setting(setting->type(), setting->default_text(), "default"));
    }
  }
  EXPECT_TRUE(names.contains("log") && names.contains("timeout") && names.contains("strict"));
}

TEST_F(Settings, EnvironmentBeatsFileBeatsDefault) {
  EXPECT_EQ(settings::timeout.nanoseconds(), 60'000'000'000u);
  write(R"({"log": "debug", "timeout": 2.5, "strict": true})");
  ::setenv("XDG_CONFIG_HOME", (home_ + "/.").c_str(), 1);  // the file is read once for each place
  EXPECT_EQ(setting_named("log").text(), "debug");
  EXPECT_TRUE(settings::strict.value());
  EXPECT_EQ(settings::strict.text(), "on");
  EXPECT_EQ(settings::timeout.nanoseconds(), 2'500'000'000u);
  ::setenv("PEERWAY_LOG", "error", 1);
  EXPECT_EQ(setting_named("log").text(), "error");
}

TEST_F(Settings, AWrongValueIsNamedWithItsOriginAndWhatIsAllowed) {
  ::setenv("PEERWAY_LOG", "loud", 1);
  EXPECT_EQ(refusal([] { static_cast<void>(setting_named("log").text()); }),
            "PEERWAY_LOG is 'loud'; it must be one of error, warning, info, debug");
  ::setenv("PEERWAY_LOG", "info", 1);
  ::setenv("PEERWAY_TIMEOUT", "-1", 1);
  EXPECT_NE(refusal([] { check_settings(); }).find("PEERWAY_TIMEOUT is '-1'; it must be a number of seconds"),
            std::string::npos);
}

TEST_F(Settings, AnUnknownKeyInTheFileIsRefusedWithTheNearestName) {
  write(R"({"timeot": 3})");
  const std::string message = refusal([] { static_cast<void>(setting_named("log").text()); });
  EXPECT_NE(message.find("'timeot' in " + home_), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean 'timeout'?"), std::string::npos) << message;
}

TEST_F(Settings, AFileThatIsNoJsonObjectIsRefused) {
  write("[1, 2");
  EXPECT_NE(refusal([] { static_cast<void>(setting_named("log").text()); }).find("must be one JSON object"),
            std::string::npos);
}

TEST_F(Settings, ValuesFitTheirTypes) {
  EXPECT_EQ(parse_setting("count", "7", "x"), 7u);
  EXPECT_EQ(parse_setting("choice:a|bc|d", "a", "x"), 0u);
  EXPECT_EQ(parse_setting("choice:a|bc|d", "d", "x"), 2u);
  for (const char* bad : {"", "K", "1K", "-1", "1.5", "18446744073709551616"})
    EXPECT_THROW(parse_setting("count", bad, "x"), Error) << bad;
  for (const char* bad : {"nan", "inf", "0", "1e9", "1s"})
    EXPECT_THROW(parse_setting("seconds", bad, "x"), Error) << bad;
  for (const char* bad : {"", "b", "a|bc", "bc|"})
    EXPECT_THROW(parse_setting("choice:a|bc|d", bad, "x"), Error) << bad;
  EXPECT_THROW(parse_setting("path", "relative/file", "x"), Error);
}

TEST_F(Settings, AProductDeclaresItsSettingsAndOnlyThenAreTheyChecked) {
  ::setenv("PEERWAY_TEST_COLOUR", "red", 1);
  ::setenv("PEERWAY_TEST_COLUOR", "red", 1);
  EXPECT_NO_THROW(check_settings());
  EXPECT_THROW(setting_named("test_colour"), Error);
  enum class Colour { red, blue };
  static const ChoiceSetting<Colour> colour{"test_colour", "red|blue", "blue", "A colour."};
  EXPECT_EQ(colour.value(), Colour::red);
  EXPECT_EQ(colour.name_of(Colour::blue), "blue");
  EXPECT_EQ(refusal([] { check_settings(); }),
            "PEERWAY_TEST_COLUOR in the environment is not a setting; did you mean PEERWAY_TEST_COLOUR?");
  ::unsetenv("PEERWAY_TEST_COLUOR");
  ::setenv("PEERWAY_TEST_COLOUR", "green", 1);
  EXPECT_EQ(refusal([] { check_settings(); }), "PEERWAY_TEST_COLOUR is 'green'; it must be one of red, blue");
  ::unsetenv("PEERWAY_TEST_COLOUR");
}

TEST_F(Settings, AnUnknownVariableIsRefusedAndThoseThatAreNoSettingsAreNot) {
  ::setenv("PEERWAY_RANK", "0", 1);
  ::setenv("PEERWAY_BUILD_WHEELS", "/wheels", 1);
  EXPECT_NO_THROW(check_settings());
  ::setenv("PEERWAY_LOGG", "info", 1);
  EXPECT_EQ(refusal([] { check_settings(); }),
            "PEERWAY_LOGG in the environment is not a setting; did you mean PEERWAY_LOG?");
  ::unsetenv("PEERWAY_LOGG");
  ::setenv("PEERWAY_BANANA", "1", 1);
  EXPECT_EQ(refusal([] { check_settings(); }),
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
