// The torus file and the NIC's options: what is read, and the errors for bad ones.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status.h"
#include "peerway/nic.h"
#include "torus/failure.h"
#include "torus/file.h"
#include "torus/options.h"

namespace pw::torus {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_torus(text, "t.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TorusFile, IsARingOfEightWhenNothingIsSaid) {
  for (const TorusFile& torus : {TorusFile{}, parse_torus("{}", "t.json")}) {
    EXPECT_EQ(torus.extents, std::vector<uint32_t>{8});
    EXPECT_EQ(torus.contexts, 128u);
    EXPECT_EQ(torus.guarantees, PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS);
    EXPECT_FALSE(torus.timed || torus.faults.of_packets() || torus.faults.of_operations());
  }
}

TEST(TorusFile, ReadsEverything) {
  const TorusFile torus = parse_torus(R"({"extents": [2, 1], "contexts": 3, "hop_ns": 1, "latency_ns": 2,
      "gap_ns": 8, "gbit_per_s": 4, "timed": true, "guarantees": ["gets_behind_puts"], "stated": [], "cut": [[0, 1]],
      "nodes": {"0": "10.0.0.1:7000", "1": "10.0.0.2"}, "dead": [1, {"node": 0, "after_ms": 2.5}],
      "faults": {"seed": 9, "delay": {"probability": 0.5, "us": 3}, "reorder": {"probability": 1, "us": 4},
                 "drop": 0.1, "duplicate": 0.2, "corrupt": 0.3}})",
                                      "t.json");
  EXPECT_EQ(torus.node_count(), 2u);
  EXPECT_EQ(torus.contexts, 3u);
  EXPECT_EQ(torus.hop_ns + torus.latency_ns + torus.gbit_per_s + torus.gap_ns, 15);
  EXPECT_TRUE(torus.timed);
  EXPECT_EQ(torus.guarantees, PW_NIC_GETS_BEHIND_PUTS);
  EXPECT_EQ(torus.stated, 0u);
  EXPECT_EQ(torus.nodes[0].port, 7000);
  EXPECT_EQ(torus.nodes[1].port, 0);
  EXPECT_EQ(torus.nodes[1].ip - torus.nodes[0].ip, 1u << 24);
  EXPECT_EQ(torus.dead, (std::vector<Death>{{1, 0}, {0, 2'500'000}}));
  EXPECT_EQ(torus.faults.seed, 9u);
  EXPECT_EQ(torus.faults.delay.ns, 3000u);
  EXPECT_EQ(torus.faults.reorder.ns, 4000u);
  EXPECT_TRUE(torus.faults.of_packets() && torus.faults.of_operations());
}

TEST(TorusFile, StatesWhatItKeepsUnlessItIsToLie) {
  EXPECT_EQ(parse_torus(R"({"guarantees": []})", "t").stated, 0u);
  EXPECT_EQ(parse_torus(R"({"guarantees": [], "stated": ["puts_in_order"]})", "t").stated,
            PW_NIC_PUTS_IN_ORDER);
}

TEST(TorusFile, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[]{
      {"[", "t.json: is not JSON"},
      {"[]", "must be an object, not a list of 0"},
      {R"({"extent": [4]})", R"(has no key "extent")"},
      {R"({"extents": []})", "extents: must be a list of 1 to 4 items"},
      {R"({"extents": [2, 2, 2, 2, 2]})", "extents: must be a list of 1 to 4 items"},
      {R"({"extents": [4, 0]})", "extents[1]: "},
      {R"({"extents": [1025]})", "extents: makes 1025 nodes or more; at most 1024 are possible"},
      {R"({"extents": [32, 33]})", "extents: makes 1056 nodes or more; at most 1024 are possible"},
      {R"({"extents": [5, 5], "contexts": 41})", "25 nodes of 41 contexts are 1025 endpoints; at most 1024"},
      {R"({"contexts": 0})", "contexts: "},
      {R"({"extents": [3], "nodes": {"0": "10.0.0.1", "2": "10.0.0.3"}})",
       "nodes: node 1 is missing: the extents make 3 nodes, and each needs an address"},
      {R"({"extents": [1], "nodes": {"0": "10.0.0.1", "1": "10.0.0.3"}})",
       "nodes: '1' is not a node; the extents make nodes 0 to 0"},
      {R"({"extents": [1], "nodes": {"0": "host"}})", "nodes.0: 'host' is not an address; write 10.0.0.1"},
      {R"({"extents": [1], "nodes": {"0": "10.0.0.1:65535"}})",
       "nodes.0: '10.0.0.1:65535' has no port of 1 to 64512"},
      {R"({"extents": [4], "cut": [[0, 2]]})", "cut[0]: nodes 0 and 2 have no link to be cut"},
      {R"({"extents": [4], "cut": [[0, 4]]})", "cut[0][1]: "},
      {R"({"extents": [4], "cut": [[0]]})", "cut[0]: must be a list of 2 items"},
      {R"({"extents": [4], "dead": [4]})", "dead[0]: "},
      {R"({"dead": [{"node": 1}]})", R"(the key "after_ms" is missing)"},
      {R"({"timed": 1})", "timed: must be true or false"},
      {R"({"guarantees": ["puts"]})",
       "guarantees[0]: 'puts' is not an ordering guarantee; there are puts_in_order and gets_behind_puts"},
      {R"({"faults": {"drop": 0.6}})", "faults.drop: "},
      {R"({"faults": {"delay": 0.1}})", "faults.delay: must be an object"},
      {R"({"faults": {"delay": {"probability": 2, "us": 1}}})", "faults.delay.probability: "},
      {R"({"faults": {"dropped": 0.1}})", R"(has no key "dropped")"},
      {R"({"gbit_per_s": 0})", "gbit_per_s: "},
  };
  for (const auto& [text, expected] : cases) {
    const std::string said = refusal(text);
    EXPECT_NE(said.find(expected), std::string::npos) << text << "\n" << said;
    EXPECT_NE(said.find("docs/nic/torus.md"), std::string::npos) << said;
  }
}

TEST(TorusFile, SaysThatItIsNotThere) {
  std::string text;
  try {
    load_torus("/nowhere/t.json", text);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the torus file /nowhere/t.json cannot be read"),
              std::string::npos);
  }
}

TEST(TorusOptions, AreAFileOrNamedValues) {
  EXPECT_EQ(parse_options("").file, "");
  EXPECT_EQ(parse_options("/a/b,c.json").file, "/a/b,c.json");
  const Options options = parse_options("file=/a.json,node=3,counters=/c");
  EXPECT_EQ(options.file, "/a.json");
  EXPECT_EQ(options.node, 3u);
  EXPECT_EQ(options.counters, "/c");
}

TEST(TorusOptions, SayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[]{
      {"node=x", "node=x is not the number"},
      {"node=", "node= is not the number"},
      {"nodes=1", "there is no option 'nodes'; there are file=, node= and counters="},
      {"node=1,t.json", "a torus file beside others is file=t.json"},
  };
  for (const auto& [text, expected] : cases) {
    try {
      parse_options(text);
      ADD_FAILURE() << text;
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find(expected), std::string::npos) << failure.what();
      EXPECT_EQ(failure.status(), PW_NIC_INVALID);
    }
  }
}

}  // namespace
}  // namespace pw::torus
