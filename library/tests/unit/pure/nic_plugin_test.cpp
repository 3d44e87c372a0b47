// Files that are refused as plugins, and the messages.
#include <gtest/gtest.h>

#include <string>

#include "base/status.h"
#include "nic/plugin.h"

namespace pw::nic {
namespace {

pw_nic_ops complete() {
  pw_nic_ops ops{};
  ops.abi = PW_NIC_ABI;
  ops.size = sizeof ops;
  ops.name = "toy-1";
  ops.open = [](const pw_nic_options*, pw_nic**) { return PW_NIC_BROKEN; };
  ops.close = [](pw_nic*) {};
  ops.query = [](pw_nic*, pw_nic_info*) {};
  ops.address = [](pw_nic*, pw_nic_address*) {};
  ops.why = [](pw_nic*) { return ""; };
  ops.connect = [](pw_nic*, const pw_nic_address*, pw_nic_peer**) { return PW_NIC_BROKEN; };
  ops.disconnect = [](pw_nic*, pw_nic_peer*) {};
  ops.register_memory = [](pw_nic*, const pw_nic_span*, pw_nic_memory**, pw_nic_key*) {
    return PW_NIC_BROKEN;
  };
  ops.deregister_memory = [](pw_nic*, pw_nic_memory*) {};
  ops.import_key = [](pw_nic*, pw_nic_peer*, const pw_nic_key*, pw_nic_remote**) { return PW_NIC_BROKEN; };
  ops.release_key = [](pw_nic*, pw_nic_remote*) {};
  ops.put = [](pw_nic*, pw_nic_remote*, uint64_t, const void*, pw_nic_memory*, uint64_t, pw_nic_done*) {
    return PW_NIC_BROKEN;
  };
  ops.get = [](pw_nic*, pw_nic_remote*, uint64_t, void*, pw_nic_memory*, uint64_t, pw_nic_done*) {
    return PW_NIC_BROKEN;
  };
  ops.progress = [](pw_nic*) { return 0u; };
  ops.arm = [](pw_nic*) {};
  return ops;
}

std::string refusal(const pw_nic_ops* ops) {
  try {
    Plugin::of(ops, "toy.so");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_UNAVAILABLE);
    return error.what();
  }
  return "";
}

TEST(Plugin, IsTakenWhenItIsComplete) {
  const pw_nic_ops ops = complete();
  EXPECT_EQ(Plugin::of(&ops, "toy.so")->name(), "toy-1");
}

TEST(Plugin, OfAnotherVersionIsRefusedWithBothNumbers) {
  pw_nic_ops ops = complete();
  ops.abi = 7;
  EXPECT_NE(refusal(&ops).find("version 7 of peerway/nic.h, this Peerway has version 1"), std::string::npos);
}

TEST(Plugin, MissingEntriesAreNamed) {
  pw_nic_ops ops = complete();
  ops.get = nullptr;
  ops.query = nullptr;
  EXPECT_NE(refusal(&ops).find("has no query, get;"), std::string::npos);
}

TEST(Plugin, BuiltWithAShorterStructHasNoOptionalEntries) {
  pw_nic_ops ops = complete();
  ops.size = offsetof(pw_nic_ops, event);
  EXPECT_EQ(Plugin::of(&ops, "toy.so")->ops().arm, nullptr);
  ops.size = offsetof(pw_nic_ops, progress);
  EXPECT_NE(refusal(&ops).find("has no progress;"), std::string::npos);
  ops.size = 0;
  EXPECT_NE(refusal(&ops).find("sizeof(pw_nic_ops)"), std::string::npos);
}

TEST(Plugin, BadNamesAreRefused) {
  for (const char* name : {"", "Torus", "a b", "nic:x", "a-name-that-goes-on-and-on-for-ever-and-ever"}) {
    pw_nic_ops ops = complete();
    ops.name = name;
    EXPECT_NE(refusal(&ops).find("lower-case"), std::string::npos) << name;
  }
  pw_nic_ops ops = complete();
  ops.name = nullptr;
  EXPECT_NE(refusal(&ops).find("lower-case"), std::string::npos);
}

TEST(Plugin, ThatReturnsNothingIsRefused) {
  EXPECT_NE(refusal(nullptr).find("returned NULL"), std::string::npos);
}

TEST(Plugin, FilesThatAreNoPluginsAreRefused) {
  const auto refused = [](const char* path) -> std::string {
    try {
      Plugin::load(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refused("/nowhere/libtoy.so").find("/nowhere/libtoy.so cannot be loaded"), std::string::npos);
  EXPECT_NE(refused("libc.so.6").find("has no function pw_nic_plugin()"), std::string::npos);
}

}  // namespace
}  // namespace pw::nic
