// The route table: what was measured on one machine, in a JSON file that a person can read. `peerway tune`
// makes it; contexts read it when they are created, and so does `peerway explain`.
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

/// Returns a hash over all fields, as 16 hexadecimal digits.
std::string machine_hash(const Machine& machine);

/// The cost of one path in one case.
struct Cost {
  Case measured_case;
  std::string path;
  CostLine line;
};

/// The cost of one split, measured with all its paths working at once.
struct SplitCost {
  Case measured_case;
  Split split;
  CostLine line;
};

/// A path that a pair class lacks on this machine.
struct MissingPath {
  PairClass pair;
  std::string path;
  std::string why;
};

struct Table {
  std::string tool;  ///< "peerway 0.1.0"
  std::string date;  ///< when it was measured, in the caller's format
  Machine machine;
  uint64_t staging_chunk_bytes = 0;  ///< 0: not measured
  std::vector<MissingPath> missing;
  std::vector<Cost> costs;
  std::vector<SplitCost> splits;
};

/// Parses a table. `name` is the file's name in messages. A path of a family is always allowed; if no names
/// are known, every name is. Throws Error(PW_BAD_TABLE) if the text is not JSON or of another version, a path
/// does not exist, or a value is invalid.
Table parse_table(std::string_view text, const std::string& name, const KnownPaths& known = {});

/// Returns the file's text, with one line for each cost line. parse_table(print_table(t)) equals t.
std::string print_table(const Table& table);

/// Reads and parses a file. Throws Error(PW_BAD_TABLE), also if it is missing.
Table load_table(const std::string& file, const KnownPaths& known = {});

/// Writes a new file and renames it over the old one; makes missing folders. Throws Error(PW_SYSTEM).
void save_table(const Table& table, const std::string& file);

/// Throws Error(PW_BAD_TABLE) with the fields that differ if the table was measured on another machine.
void check_machine(const Table& table, const Machine& machine, const std::string& name);

}  // namespace pw::route
