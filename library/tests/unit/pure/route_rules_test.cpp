// The user's rules: what they parse to, what they refuse, and that they never leave a hole.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/status.h"
#include "rounds.h"
#include "route/rules.h"

namespace pw::route {
namespace {

const KnownPaths kKnownPaths = {
    {"peer/copy", "peer/store", "mapped", "staged", "ucx", "plan/lines", "plan/straight"},
    {{"nic:", "NIC", "PEERWAY_NIC", "a plugin's file"}}};
const Case kGpuPut{Op::put, ShapeClass::contiguous, {"cuda", "cuda", "nvlink", false}};

std::vector<Choosable> candidates(std::initializer_list<const char*> names) {
  std::vector<Choosable> out;
  for (const std::string name : names) {
    Choosable c;
    for (size_t start = 0; start <= name.size();) {
      const size_t end = std::min(name.find('+', start), name.size());
      c.paths.push_back(name.substr(start, end - start));
      start = end + 1;
    }
    out.push_back(c);
  }
  return out;
}

/// The names allowed at one size.
std::string allowed_at(const char* rules, uint64_t bytes, std::initializer_list<const char*> names,
                       std::vector<std::string>* notes = nullptr, const Case& where = kGpuPut) {
  const auto choosable = candidates(names);
  std::vector<std::string> mine;
  const std::vector<Unavailable> unavailable = {{"mapped", "the driver refuses"}};
  for (const Allowance& a : parse_rules(rules, "rules.json", kKnownPaths)
                                .apply(where, choosable, unavailable, notes ? *notes : mine))
    if (bytes >= a.sizes.from && bytes < a.sizes.to) {
      std::string out;
      for (size_t i : a.allowed) out += (out.empty() ? "" : " ") + std::string(names.begin()[i]);
      return out;
    }
  return "a hole";
}

struct Expectation {
  const char* rules;
  uint64_t bytes;
  const char* allowed;
};

TEST(RouteRules, WhatTheyAllow) {
  const Expectation table[] = {
      {R"({"rules":[]})", 8, "peer/copy peer/store staged peer/copy+staged"},
      {R"({"rules":[{"use":"staged"}]})", 8, "staged"},
      {R"({"rules":[{"use":"peer"}]})", 8, "peer/copy peer/store"},
      {R"({"rules":[{"use":"peer/*"}]})", 8, "peer/copy peer/store"},
      {R"({"rules":[{"use":"peer/copy,staged"}]})", 8, "peer/copy staged peer/copy+staged"},
      {R"({"rules":[{"use":"peer/copy+staged"}]})", 8, "peer/copy+staged"},
      {R"({"rules":[{"use":"staged+peer"}]})", 8, "peer/copy+staged"},
      {R"({"rules":[{"forbid":"staged"}]})", 8, "peer/copy peer/store"},
      {R"({"rules":[{"forbid":"peer/copy+staged"}]})", 8, "peer/copy peer/store staged"},
      {R"({"rules":[{"forbid":"peer"},{"use":"peer/copy"}]})", 8, "peer/copy"},  // the later rule wins
      {R"({"rules":[{"use":"peer/copy"},{"forbid":"peer"}]})", 8, "staged"},
      {R"({"rules":[{"use":"peer/copy"},{"use":"staged"}]})", 8, "staged"},
      {R"({"rules":[{"use":"staged","bytes":"64K:1M"}]})", 65535,
       "peer/copy peer/store staged peer/copy+staged"},
      {R"({"rules":[{"use":"staged","bytes":"64K:1M"}]})", 65536, "staged"},
      {R"({"rules":[{"use":"staged","bytes":"64K:1M"}]})", 1 << 20, "staged"},
      {R"({"rules":[{"use":"staged","bytes":"64K:1M"}]})", (1 << 20) + 1,
       "peer/copy peer/store staged peer/copy+staged"},
      {R"({"rules":[{"use":"staged","op":"get"}]})", 8, "peer/copy peer/store staged peer/copy+staged"},
      {R"({"rules":[{"use":"staged","op":"p*"}]})", 8, "staged"},
      {R"({"rules":[{"use":"staged","pair":"cuda->cuda*"}]})", 8, "staged"},
      {R"({"rules":[{"use":"staged","pair":"cuda->cuda"}]})", 8,
       "peer/copy peer/store staged peer/copy+staged"},
      {R"({"rules":[{"use":"staged","shape":"blocks*"}]})", 8,
       "peer/copy peer/store staged peer/copy+staged"},
      {R"({"rules":[{"use":"mapped"}]})", 8,
       "peer/copy peer/store staged peer/copy+staged"},  // not available
      {R"({"rules":[{"forbid":"peer,staged,mapped,ucx"}]})", 8,
       "peer/copy peer/store staged peer/copy+staged"},
      {R"({"comment":"x","rules":[{"use":"nic:toy","comment":"y"}]})", 8,
       "peer/copy peer/store staged peer/copy+staged"},
  };
  for (const Expectation& e : table)
    EXPECT_EQ(allowed_at(e.rules, e.bytes, {"peer/copy", "peer/store", "staged", "peer/copy+staged"}),
              e.allowed)
        << e.rules << " at " << e.bytes;
}

TEST(RouteRules, AUseOfMethodsIsForSendsAndOneOfPathsForPutsAndGets) {
  const Case send{Op::send, ShapeClass::contiguous, kGpuPut.pair};
  const auto sends = {"plan/lines", "plan/straight"}, puts = {"peer/copy", "staged"};
  const std::tuple<const char*, const char*, const char*> table[] = {
      {R"({"use":"plan/straight"})", "plan/straight", "peer/copy staged"},
      {R"({"use":"plan/straight","op":"send"})", "plan/straight", "peer/copy staged"},
      {R"({"use":"staged"})", "plan/lines plan/straight", "staged"},
      {R"({"use":"staged,plan/lines"})", "plan/lines", "staged"},
      {R"({"use":"p*"})", "plan/lines plan/straight", "peer/copy"},
      {R"({"forbid":"plan/lines"})", "plan/straight", "peer/copy staged"},
  };
  for (const auto& [rule, of_sends, of_puts] : table) {
    std::vector<std::string> notes;
    const std::string rules = std::string(R"({"rules":[)") + rule + "]}";
    EXPECT_EQ(allowed_at(rules.c_str(), 8, sends, &notes, send), of_sends) << rule;
    EXPECT_EQ(allowed_at(rules.c_str(), 8, puts, &notes), of_puts) << rule;
    EXPECT_TRUE(notes.empty()) << rule << ": " << notes.front();
  }
}

TEST(RouteRules, NotesSayWhatWasNotFollowed) {
  std::vector<std::string> notes;
  allowed_at(R"({"rules":[{"use":"mapped"}]})", 8, {"peer/copy"}, &notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "rules.json: rules[0] asks for mapped, which is not available for put contiguous "
            "cuda->cuda/nvlink (mapped: the driver refuses); left out");
  notes.clear();
  allowed_at(R"({"rules":[{"forbid":"*"}]})", 8, {"peer/copy"}, &notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("forbid every path"), std::string::npos) << notes[0];
  notes.clear();
  allowed_at(R"({"rules":[{"use":"peer/copy"},{"forbid":"staged"}]})", 8, {"peer/copy", "staged"}, &notes);
  EXPECT_TRUE(notes.empty());
}

TEST(RouteRules, RandomRulesNeverLeaveAHole) {
  std::mt19937_64 random(11);
  const auto choosable = candidates({"peer/copy", "peer/store", "staged", "peer/copy+staged"});
  const char* patterns[] = {"peer", "peer/*", "staged", "*", "mapped", "peer/copy+staged", "nic:toy", "ucx"};
  for (size_t trial = 0; trial < rounds(2000); ++trial) {
    Rules rules;
    for (size_t i = 0, n = random() % 12; i < n; ++i) {
      Rule rule;
      const uint64_t a = 1 + (random() >> (1 + random() % 63)), b = 1 + (random() >> (1 + random() % 63));
      if (random() % 4) rule.bytes = {std::min(a, b), std::min(kEnd, std::max(a, b) + 1)};
      rule.forbid = random() % 2;
      rule.paths = {patterns[random() % std::size(patterns)]};
      rule.origin = "rule";
      rules.add(rule);
    }
    std::vector<std::string> notes;
    uint64_t at = 1;
    for (const Allowance& a : rules.apply(kGpuPut, choosable, {}, notes)) {
      ASSERT_EQ(a.sizes.from, at);
      ASSERT_LT(a.sizes.from, a.sizes.to);
      ASSERT_FALSE(a.allowed.empty());
      at = a.sizes.to;
    }
    ASSERT_EQ(at, kEnd);
  }
}

TEST(RouteRules, RefusesWithTheValueAndWhatIsAllowed) {
  const std::pair<const char*, const char*> table[] = {
      {"", "is not JSON"},
      {"{\"rules\":[", "line 1"},
      {"[]", "must be an object, not a list of 0"},
      {"{}", "\"rules\" is missing"},
      {R"({"rules":{}})", "rules: must be a list"},
      {R"({"rule":[]})", "did you mean \"rules\"?"},
      {R"({"rules":[7]})", "rules[0]: must be an object, not 7"},
      {R"({"rules":[{}]})", "needs \"use\" or \"forbid\""},
      {R"({"rules":[{"use":"staged","forbid":"peer"}]})", "write two rules"},
      {R"({"rules":[{"use":"stage"}]})", "rules[0].use: \"stage\" is not a path; did you mean \"staged\"?"},
      {R"({"rules":[{"use":"peer/copy+stagd"}]})", "\"stagd\" is not a path"},
      {R"({"rules":[{"use":""}]})", "\"\" is not a path"},
      {R"({"rules":[{"use":"staged,"}]})", "\"\" is not a path"},
      {R"({"rules":[{"use":["staged"]}]})", "must be a text, not a list of 1"},
      {R"({"rules":[{"uses":"staged"}]})", "did you mean \"use\"?"},
      {R"({"rules":[{"use":"staged","op":"putt"}]})", "did you mean \"put\"?"},
      {R"({"rules":[{"use":"plan/lines","op":"sends"}]})", "did you mean \"send\"?"},
      {R"({"rules":[{"use":"staged","shape":"strided"}]})", "\"strided\" matches nothing"},
      {R"({"rules":[{"use":"staged","pair":"cuda"}]})", "\"cuda\" is not a pair"},
      {R"({"rules":[{"use":"staged","pair":"CUDA*"}]})", "which is in no pair"},
      {R"({"rules":[{"use":"staged","bytes":"64KB:1M"}]})", "rules[0].bytes: \"64KB\" is not a size"},
      {R"({"rules":[{"use":"staged","bytes":"1M:64K"}]})", "is empty"},
      {R"({"rules":[{"use":"staged","bytes":65536}]})", "must be a text, not 65536"},
      {R"({"rules":[{"use":"staged","use":"peer"}]})", "comes twice"},
  };
  for (const auto& [text, expected] : table) try {
      (void)parse_rules(text, "my/rules.json", kKnownPaths);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_BAD_TABLE);
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << text << "\n" << error.what();
      EXPECT_EQ(std::string(error.what()).find("my/rules.json: "), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find("; correct it"), std::string::npos) << error.what();
    }
}

TEST(RouteRules, RestrictionOfAContext) {
  const Rule rule = use_rule("peer/copy,staged", kKnownPaths);
  EXPECT_TRUE(rule.names("peer/copy"));
  EXPECT_FALSE(rule.names("peer/store"));
  EXPECT_TRUE(use_rule("peer", kKnownPaths).names("peer/store"));
  EXPECT_THROW(use_rule("pear", kKnownPaths), Error);
}

TEST(RouteRules, ANicThatThisContextLacksIsToldWithTheSetting) {
  KnownPaths with_nic = kKnownPaths;
  with_nic.names.push_back("nic:torus");
  struct {
    const char* paths;
    KnownPaths known;
    const char* expected;
  } const table[] = {
      {"nic:torus", kKnownPaths, "no NIC 'torus' in this context; set PEERWAY_NIC=torus (a plugin's file)"},
      {"staged,nic:toy", with_nic, "no NIC 'toy' in this context; set PEERWAY_NIC=toy "},
      {"nic:tours", with_nic, "no NIC 'tours' in this context; did you mean \"nic:torus\"?"},
      {"staged+nic:torus1", with_nic, "did you mean \"nic:torus\"?"},
      {"nic:*", kKnownPaths, "\"nic:*\" is not a path"},
  };
  for (const auto& [paths, known, expected] : table) try {
      (void)use_rule(paths, known);
      ADD_FAILURE() << paths;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_INVALID_ARGUMENT);
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << paths << "\n" << error.what();
    }
  EXPECT_TRUE(use_rule("nic:*", with_nic).names("nic:torus"));
}

TEST(RouteRules, MissingFile) {
  try {
    (void)load_rules("/nowhere/rules.json", kKnownPaths);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_BAD_TABLE);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace pw::route
