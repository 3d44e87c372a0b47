// How NICs are named by people, and what of it is refused.
#include "nic/nic_spec.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace pw::nic {
namespace {

bool same(const NicSpec& nic, const char* name, const char* plugin, const char* options) {
  return nic.name == name && nic.plugin == plugin && nic.options == options;
}

std::string why_refused(const char* text) {
  try {
    parse_nics(text, "PEERWAY_NIC");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NicSpec, OneNicIsANameAPluginAndWhatItIsTold) {
  const struct {
    const char *text, *name, *plugin, *options;
  } table[] = {
      {"torus", "", "torus", ""},
      {"torus?", "", "torus", ""},
      {"torus?ring.json", "", "torus", "ring.json"},
      {"near=torus?file=a.json,node=1", "near", "torus", "file=a.json,node=1"},
      {"./libmy.so", "", "./libmy.so", ""},
      {"n-1=/x/libmy.so?what?=4", "n-1", "/x/libmy.so", "what?=4"},
      {"./a=b/libmy.so", "", "./a=b/libmy.so", ""},
  };
  for (const auto& [text, name, plugin, options] : table) {
    EXPECT_TRUE(same(parse_nic(text, "here"), name, plugin, options)) << text;
  }
}

TEST(NicSpec, NicsAreSeparatedBySemicolons) {
  const auto nics = parse_nics("near=torus?a=1,b=2;;far=./libmy.so;", "here");
  ASSERT_EQ(nics.size(), 2u);
  EXPECT_TRUE(same(nics[0], "near", "torus", "a=1,b=2"));
  EXPECT_TRUE(same(nics[1], "far", "./libmy.so", ""));
  EXPECT_TRUE(parse_nics("", "here").empty());
}

TEST(NicSpec, WhatNamesNoNicIsRefusedWithWhereItStands) {
  EXPECT_NE(why_refused("Near=torus").find("the name 'Near'"), std::string::npos);
  EXPECT_NE(why_refused("=torus").find("the name ''"), std::string::npos);
  EXPECT_NE(why_refused("near=").find("'near=' names no plugin"), std::string::npos);
  EXPECT_NE(why_refused("torus;?x").find("'?x' names no plugin"), std::string::npos);
  EXPECT_NE(why_refused("near=?x").find("PEERWAY_NIC"), std::string::npos);
  EXPECT_THROW(parse_nic("a=torus;b=torus", "here"), Error);
  EXPECT_THROW(parse_nic("", "here"), Error);
}

TEST(NicSpec, AShortNameThatNoPluginHasIsRefused) {
  EXPECT_EQ(plugin_file("./libmy.so"), "./libmy.so");
  EXPECT_THROW(plugin_file("nosuch"), Error);
}

}  // namespace
}  // namespace pw::nic
