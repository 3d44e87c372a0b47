// The route table: what was measured on one machine, in a JSON file that a person can read. Made by `peerway
// tune`, read when a context is created and by `peerway explain`.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "route/class.h"
#include "route/cost_line.h"
#include "route/rules.h"
#include "route/split.h"
#include "transport/known.h"

namespace pw::route {

inline constexpr uint64_t kTableVersion = 2;

using Machine =
    std::map<std::string, std::string>;  ///< fingerprint: "cpu" -> "...", "gpu 0" -> "NVIDIA H200", ...

/// Sixteen hexadecimal digits over all fields.
std::string machine_hash(const Machine& machine);

/// The cost of one path in one case.
struct Cost {
  Case where;
  std::string path;
  CostLine line;
};

/// The cost of one split, measured with all its paths at work.
struct SplitCost {
  Case where;
  Split split;
  CostLine line;
};

/// A path that a pair class does not have on this machine.
struct MissingPath {
  PairClass pair;
  std::string path;
  std::string why;
};

struct Table {
  std::string tool;  ///< "peerway 0.1.0"
  std::string date;  ///< when it was measured, as the caller writes it
  Machine machine;
  uint64_t staging_chunk_bytes = 0;  ///< 0: not measured
  std::vector<MissingPath> missing;
  std::vector<Cost> costs;
  std::vector<SplitCost> splits;
};

/// Parses a table. `name` is the file's name in messages. A path of a family is always allowed, and
/// where no names are known any name. Throws Error(PW_BAD_TABLE): not
/// JSON, another version, a path that there is not, or any value that cannot be.
Table parse_table(std::string_view text, const std::string& name, const KnownPaths& known = {});

/// The file's text: one line a cost line. parse_table(print_table(t)) is t.
std::string print_table(const Table& table);

/// The same of a file. Throws Error(PW_BAD_TABLE), also when it is missing.
Table load_table(const std::string& file, const KnownPaths& known = {});

/// Writes a new file and renames it over the old one; missing folders are made. Throws Error(PW_SYSTEM).
void save_table(const Table& table, const std::string& file);

/// Throws Error(PW_BAD_TABLE) naming the fields that differ, when the table was measured on another machine.
void check_machine(const Table& table, const Machine& machine, const std::string& name);

}  // namespace pw::route
