// The table file: round trip, every kind of damage, and the machine it belongs to.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/status.h"
#include "rounds.h"
#include "route/table.h"

namespace pw::route {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "peerway-test.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

Table printed_table() {
  Table table{.tool = "peerway 0.1.0",
              .date = "2026-11-21",
              .machine = {{"cpu", "a \"quoted\" name"}, {"gpu 0", "H200"}},
              .staging_chunk_bytes = 1 << 20,
              .missing = {},
              .costs = {},
              .splits = {}};
  const Case where{Op::put, ShapeClass::contiguous, {"cuda", "cuda", "nvlink", false}};
  table.missing = {{where.pair, "mapped", "the driver refuses (errno 524); install gdrdrv"}};
  for (const char* path : {"peer/copy", "peer/store"}) {
    std::vector<Point> points;
    for (uint64_t bytes = 8; bytes <= 1 << 24; bytes *= 2)
      points.push_back({bytes, 1.0 / 3 + static_cast<double>(bytes) / 7e4, bytes % 3 == 1 ? 0.0 : 0.0125});
    table.costs.push_back({where, path, CostLine(points)});
  }
  table.splits.push_back(
      {where, {.parts = {{"peer/copy", 230}, {"staged", 26}}}, CostLine({{1 << 24, 200, 0.01}})});
  return table;
}

void expect_same(const Table& a, const Table& b) {
  EXPECT_EQ(a.tool, b.tool);
  EXPECT_EQ(a.date, b.date);
  EXPECT_EQ(a.machine, b.machine);
  EXPECT_EQ(a.staging_chunk_bytes, b.staging_chunk_bytes);
  ASSERT_EQ(a.missing.size(), b.missing.size());
  for (size_t i = 0; i < a.missing.size(); ++i) {
    EXPECT_EQ(a.missing[i].pair, b.missing[i].pair);
    EXPECT_EQ(a.missing[i].path, b.missing[i].path);
    EXPECT_EQ(a.missing[i].why, b.missing[i].why);
  }
  ASSERT_EQ(a.costs.size(), b.costs.size());
  for (size_t i = 0; i < a.costs.size(); ++i) {
    EXPECT_EQ(a.costs[i].measured_case, b.costs[i].measured_case);
    EXPECT_EQ(a.costs[i].path, b.costs[i].path);
    EXPECT_EQ(a.costs[i].line, b.costs[i].line);
  }
  ASSERT_EQ(a.splits.size(), b.splits.size());
  for (size_t i = 0; i < a.splits.size(); ++i) {
    EXPECT_EQ(a.splits[i].measured_case, b.splits[i].measured_case);
    EXPECT_EQ(a.splits[i].split, b.splits[i].split);
    EXPECT_EQ(a.splits[i].line, b.splits[i].line);
  }
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_table(text, "routes/node01.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_BAD_TABLE) << error.what();
    EXPECT_EQ(std::string(error.what()).find("routes/node01.json: "), 0u) << error.what();
    EXPECT_NE(std::string(error.what()).find("run `peerway tune`"), std::string::npos) << error.what();
    return error.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(RouteTable, RoundTrip) {
  const Table table = printed_table();
  const std::string text = print_table(table);
  const Table again = parse_table(text, "x");
  expect_same(table, again);
  EXPECT_EQ(print_table(again), text);
  expect_same(Table{}, parse_table(print_table(Table{}), "x"));
}

TEST(RouteTable, OneLineForEachPathAndCase) {
  const std::string text = print_table(printed_table());
  size_t lines = 0;
  for (size_t at = 0; (at = text.find("\n    {\"op\"", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 3u);
}

TEST(RouteTable, APathThatThereIsNotIsRefused) {
  const KnownPaths known = {{"peer/copy", "peer/store", "mapped", "staged"},
                            {{"nic:", "NIC", "PEERWAY_NIC", ""}}};
  const std::string good = print_table(printed_table());
  EXPECT_NO_THROW((void)parse_table(good, "x", known));
  const std::pair<const char*, const char*> misspelt[] = {
      {"\"path\": \"peer/store\"", "\"path\": \"peer/stor\""},
      {"[\"staged\",26]", "[\"stagde\",26]"},
      {"\"path\": \"mapped\"", "\"path\": \"maped\""}};
  for (const auto& [from, to] : misspelt) try {
      (void)parse_table(replaced(good, from, to), "x", known);
      ADD_FAILURE() << to;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("did you mean"), std::string::npos) << error.what();
    }
  const std::string nic = replaced(good, "\"path\": \"peer/store\"", "\"path\": \"nic:toy\"");
  EXPECT_NO_THROW((void)parse_table(nic, "x", known)) << "the NICs differ between jobs";
}

TEST(RouteTable, EveryKindOfDamageIsNamed) {
  const std::string good = print_table(printed_table());
  Table without_points = printed_table();
  without_points.costs[0].line = CostLine();
  const std::tuple<const char*, std::string, const char*> table[] = {
      {"empty", "", "is not JSON (0 bytes)"},
      {"another version", replaced(good, "\"version\": 2", "\"version\": 1"),
       "version: is 1; this Peerway reads version 2"},
      {"another kind", replaced(good, "peerway route table", "peerway bench"), "another kind of file"},
      {"no version", replaced(good, "\"version\": 2,", ""), "\"version\" is missing"},
      {"unknown key", replaced(good, "\"date\"", "\"dates\""), "did you mean \"date\"?"},
      {"key twice", replaced(good, "\"version\": 2", "\"version\": 2, \"version\": 2"), "comes twice"},
      {"negative cost", replaced(good, "[8,0.333", "[8,-0.333"), "costs[0].points[0][1]: must be a number"},
      {"zero cost", replaced(good, "\"points\": [[8,0.3", "\"points\": [[8,0],[9,0.3"),
       "costs[0].points[0][1]"},
      {"NaN", replaced(good, "[8,0.3", "[8,NaN],[9,0.3"), "is not JSON"},
      {"infinite cost", replaced(good, "[8,0.3", "[8,1e999],[9,0.3"), "number overflow"},
      {"huge cost", replaced(good, "[8,0.3", "[8,1e300],[9,0.3"), "costs[0].points[0][1]"},
      {"negative size", replaced(good, "[[8,", "[[-8,"),
       "costs[0].points[0][0]: must be a whole number from 1"},
      {"fractional size", replaced(good, "[[8,", "[[8.5,"), "not 8.5"},
      {"overflowing size", replaced(good, "[[8,", "[[99999999999999999999,"), "costs[0].points[0][0]"},
      {"unsorted", replaced(good, "[[8,", "[[9000,"), "sizes must grow"},
      {"size as text", replaced(good, "[[8,", "[[\"8\","), "not \"8\""},
      {"no points", print_table(without_points), "costs[0].points: must be a list of 1 to 256 items"},
      {"a number as op", replaced(good, "\"op\": \"put\"", "\"op\": 7"),
       "costs[0].op: must be a text, not 7"},
      {"a line of the first version", replaced(good, "\"points\"", "\"noise\": 0.1, \"points\""),
       "has no key \"noise\""},
      {"unknown op", replaced(good, "\"put\"", "\"push\""), "\"push\" is not an operation"},
      {"unknown shape", replaced(good, "\"contiguous\"", "\"contigous\""), "did you mean \"contiguous\"?"},
      {"bad pair", replaced(good, "cuda->cuda/nvlink", "cuda"), "is not a pair"},
      {"bad path", replaced(good, "\"path\": \"peer/copy\"", "\"path\": \"peer copy\""), "is not a path"},
      {"path twice", replaced(good, "\"path\": \"peer/store\"", "\"path\": \"peer/copy\""),
       "in the table twice"},
      {"shares", replaced(good, "230", "231"), "the shares sum to 257, not to 256"},
      {"a part twice", replaced(good, "[\"staged\",26]", "[\"peer/copy\",26]"),
       "names the path \"peer/copy\" twice"},
      {"huge chunk", replaced(good, "\"staging chunk\": 1048576", "\"staging chunk\": 1e30"),
       "staging chunk"},
      {"edited machine", replaced(good, "H200", "H100"), "machine.hash"},
      {"bad UTF-8", replaced(good, "H200", "\xff\xfe"), "is not JSON"},
      {"deep", std::string(100000, '['), "nests deeper than 16"},
      {"trailing", good + "x", "is not JSON"},
  };
  for (const auto& [problem, text, expected] : table)
    EXPECT_NE(refusal(text).find(expected), std::string::npos) << problem << ": " << refusal(text);
}

TEST(RouteTable, TooManyEntriesAreRefused) {
  std::string points = "[1,1]";
  for (int i = 2; i < 400; ++i) points += ",[" + std::to_string(i) + ",1]";
  EXPECT_NE(refusal(replaced(print_table(printed_table()), "\"points\": [", "\"points\": [" + points + ","))
                .find("not a list of"),
            std::string::npos);
  std::string entries;
  for (int i = 0; i < 4096; ++i) entries += "{},";
  EXPECT_NE(refusal(replaced(print_table(printed_table()), "\"costs\": [", "\"costs\": [" + entries))
                .find("0 to 4096 items"),
            std::string::npos);
}

TEST(RouteTable, EveryTruncationIsRefused) {
  const std::string good = print_table(printed_table());
  for (size_t length = 0; length + 2 < good.size(); length += 7) {
    const std::string message = refusal(good.substr(0, length));
    EXPECT_NE(message.find("line "), std::string::npos) << message;
  }
}

TEST(RouteTable, RandomDamageIsAnErrorOrAReadableTable) {
  const std::string good = print_table(printed_table());
  std::mt19937 random(5);
  for (size_t trial = 0; trial < rounds(2000); ++trial) {
    std::string text = good;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
      text[random() % text.size()] = static_cast<char>(random() % 256);
    try {
      const Table table = parse_table(text, "x");
      for (const Cost& cost : table.costs) EXPECT_TRUE(cost.line.measured());
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_BAD_TABLE);
    }
  }
}

TEST(RouteTable, SaveAndLoad) {
  const Folder folder;
  const std::string file = folder.file("new/folder/table.json");
  save_table(printed_table(), file);
  expect_same(load_table(file), printed_table());
  save_table(Table{}, file);  // replaces
  expect_same(load_table(file), Table{});
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(file).parent_path())) files += entry.exists();
  EXPECT_EQ(files, 1u) << "no temporary file is left behind";

  const std::string link = folder.file("link.json");
  fs::create_symlink(file, link);
  save_table(printed_table(), link);
  EXPECT_TRUE(fs::is_symlink(link));
  expect_same(load_table(file), printed_table());
}

TEST(RouteTable, WhatIsNoFileIsNotReplacedByOne) {
  const Folder folder;
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  try {
    save_table(printed_table(), fifo);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_SYSTEM);
    EXPECT_EQ(error.what(), "cannot write " + fifo + ": it is not an ordinary file; name another");
  }
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST(RouteTable, WhereItCannotBeWritten) {
  const Folder folder;
  std::ofstream(folder.file("file")) << "x";
  for (const std::string& file : {folder.file("file/table.json"), std::string("/proc/no/table.json")}) try {
      save_table(printed_table(), file);
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_SYSTEM);
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("errno"), std::string::npos) << error.what();
    }
  // The old table stays when the new one cannot take its place.
  fs::create_directory(folder.file("taken"));
  EXPECT_THROW(save_table(printed_table(), folder.file("taken")), Error);
  size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(folder.file("taken")).parent_path()))
    entries += entry.exists();
  EXPECT_EQ(entries, 2u) << "no temporary file is left behind";
}

TEST(RouteTable, FilesThatCannotBeRead) {
  const Folder folder;
  const auto message = [](const std::string& file) -> std::string {
    try {
      (void)load_table(file);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_BAD_TABLE);
      return error.what();
    }
    return "loaded";
  };
  EXPECT_NE(message(folder.file("none.json")).find("No such file"), std::string::npos);
  EXPECT_NE(message("/").find("not an ordinary file"), std::string::npos);
  ASSERT_EQ(mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_NE(message(folder.file("fifo")).find("not an ordinary file"), std::string::npos);
  std::ofstream(folder.file("huge")) << "x";
  fs::resize_file(folder.file("huge"), uint64_t{1} << 30);
  EXPECT_NE(message(folder.file("huge")).find("at most 16777216 are allowed"), std::string::npos);
}

TEST(RouteTable, AnotherMachine) {
  const Table table = printed_table();
  EXPECT_NO_THROW(check_machine(table, table.machine, "x"));
  Machine other = table.machine;
  other["gpu 0"] = "A100";
  other["gpu 1"] = "A100";
  try {
    check_machine(table, other, "table.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_BAD_TABLE);
    EXPECT_EQ(std::string(error.what()),
              "table.json: was measured on another machine, or this one has changed (gpu 0 was "
              "\"H200\" and is "
              "\"A100\"; gpu 1 was absent and is \"A100\"); run `peerway tune` to measure a new one");
  }
  EXPECT_NE(machine_hash(table.machine), machine_hash(other));
  EXPECT_NE(machine_hash({{"a", "b"}, {"c", "d"}}), machine_hash({{"a", "b=c"}}));
  EXPECT_EQ(machine_hash(table.machine).size(), 16u);
}

}  // namespace
}  // namespace pw::route
