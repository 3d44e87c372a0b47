// How network cards are named by people, and what of it is refused.
#include <gtest/gtest.h>

#include "base/status.h"
#include "nic/card_spec.h"

namespace pw::nic {
namespace {

bool same(const CardSpec& card, const char* name, const char* plugin, const char* options) {
  return card.name == name && card.plugin == plugin && card.options == options;
}

std::string why_refused(const char* text) {
  try {
    parse_cards(text, "PEERWAY_NIC");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CardSpec, OneCardIsANameAPluginAndWhatItIsTold) {
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
    EXPECT_TRUE(same(parse_card(text, "here"), name, plugin, options)) << text;
  }
}

TEST(CardSpec, CardsAreSeparatedBySemicolons) {
  const auto cards = parse_cards("near=torus?a=1,b=2;;far=./libmy.so;", "here");
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_TRUE(same(cards[0], "near", "torus", "a=1,b=2"));
  EXPECT_TRUE(same(cards[1], "far", "./libmy.so", ""));
  EXPECT_TRUE(parse_cards("", "here").empty());
}

TEST(CardSpec, WhatNamesNoCardIsRefusedWithWhereItStands) {
  EXPECT_NE(why_refused("Near=torus").find("the name 'Near'"), std::string::npos);
  EXPECT_NE(why_refused("=torus").find("the name ''"), std::string::npos);
  EXPECT_NE(why_refused("near=").find("'near=' names no plugin"), std::string::npos);
  EXPECT_NE(why_refused("torus;?x").find("'?x' names no plugin"), std::string::npos);
  EXPECT_NE(why_refused("near=?x").find("PEERWAY_NIC"), std::string::npos);
  EXPECT_THROW(parse_card("a=torus;b=torus", "here"), Error);
  EXPECT_THROW(parse_card("", "here"), Error);
}

TEST(CardSpec, AShortNameThatNoPluginHasIsRefused) {
  EXPECT_EQ(plugin_file("./libmy.so"), "./libmy.so");
  EXPECT_THROW(plugin_file("nosuch"), Error);
}

}  // namespace
}  // namespace pw::nic
