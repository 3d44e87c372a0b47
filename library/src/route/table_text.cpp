// The table's text: written with one line per path and case, and read with every value checked.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/status.h"
#include "route/json_reader.h"
#include "route/suggest.h"
#include "route/table.h"

namespace pw::route {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "peerway route table";
constexpr std::string_view kAbout =
    "Costs are microseconds to completion. A point is [bytes, cost, relative spread]. Shares of a split are "
    "of 256.";
const std::string kTableRemedy = "run `peerway tune` to measure a new one";

constexpr size_t kMostEntries = 4096, kMostPoints = 256, kMostMachineFields = 256;
constexpr double kMostMicroseconds = 1e12;  // twelve days
constexpr double kLeastMicroseconds = 1e-6;
constexpr uint64_t kMostBytes = kEnd - 1;

// ---- reading

Point read_point(const Reader& reader) {
  const size_t items = reader.items(2, 3);
  return {reader.item(0).whole(1, kMostBytes), reader.item(1).number(kLeastMicroseconds, kMostMicroseconds),
          items == 3 ? reader.item(2).number(0, 100) : 0};
}

CostLine read_line(const Reader& reader) {
  std::vector<Point> points;
  const size_t count = reader.items(1, kMostPoints);
  for (size_t i = 0; i < count; ++i) {
    points.push_back(read_point(reader.item(i)));
    if (i > 0 && points[i].bytes <= points[i - 1].bytes)
      reader.item(i).refuse(
          format("{} bytes come after {}; sizes must grow", points[i].bytes, points[i - 1].bytes));
  }
  return CostLine(std::move(points));
}

Case read_case(const Reader& entry) {
  return {entry.at("op").parsed(parse_op), entry.at("shape").parsed(parse_shape_class),
          entry.at("pair").parsed(parse_pair_class)};
}

/// Reads the name of a path that exists or could exist: members of families depend on settings.
std::string read_path(const Reader& reader, const KnownPaths& known) {
  std::string path = reader.text();
  if (!is_path_name(path))
    reader.refuse(
        format("{} is not a path; names are 1 to 64 letters, digits and _ . : / -", in_quotes(path)));
  const auto& names = known.names;
  if (!names.empty() && family_of(known.families, path) == nullptr &&
      std::ranges::find(names, path) == names.end())
    reader.refuse(format("{} is not a path{}", in_quotes(path), allowed(path, names)));
  return path;
}

Split read_split(const Reader& entry, const KnownPaths& known) {
  Split split;
  const Reader list = entry.at("parts");
  const size_t count = list.items(2, kMaxParts);
  std::set<std::string> seen;
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const Reader item = list.item(i);
    (void)item.items(2, 2);
    SplitPart part{read_path(item.item(0), known), static_cast<uint16_t>(item.item(1).whole(1, kShares - 1))};
    if (!seen.insert(part.path).second) item.refuse(format("names the path {} twice", in_quotes(part.path)));
    sum += part.share;
    split.parts.push_back(std::move(part));
  }
  if (sum != kShares) list.refuse(format("the shares sum to {}, not to {}", sum, kShares));
  split.minimum_part = entry.at("minimum part").whole(1, kMostBytes);
  split.align = entry.at("align").whole(1, kMostBytes);
  return split;
}

Machine read_machine(const Reader& reader) {
  reader.only({"hash", "fields"});
  const Reader fields = reader.at("fields");
  Machine machine;
  const auto names = fields.keys();
  if (names.size() > kMostMachineFields)
    fields.refuse(format("has {} fields; at most {} are allowed", names.size(), kMostMachineFields));
  for (const std::string& name : names) machine[name] = fields.at(name).text();
  if (const auto hash = reader.find("hash"); hash && hash->text() != machine_hash(machine))
    hash->refuse(format("is {}, but the fields give {}: the file was changed by hand",
                        in_quotes(hash->text()), in_quotes(machine_hash(machine))));
  return machine;
}

void read_entries(const Reader& top, const KnownPaths& known, Table& table) {
  std::set<std::string> seen;
  const auto once = [&](const Reader& entry, const std::string& name) {
    if (!seen.insert(name).second) entry.refuse(format("{} is in the table twice", name));
  };
  const Reader missing = top.at("unavailable"), costs = top.at("costs"), splits = top.at("splits");
  for (size_t i = 0, n = missing.items(0, kMostEntries); i < n; ++i) {
    const Reader entry = missing.item(i);
    entry.only({"pair", "path", "why"});
    table.missing.push_back({entry.at("pair").parsed(parse_pair_class), read_path(entry.at("path"), known),
                             entry.at("why").text()});
  }
  for (size_t i = 0, n = costs.items(0, kMostEntries); i < n; ++i) {
    const Reader entry = costs.item(i);
    entry.only({"op", "shape", "pair", "path", "points"});
    Cost cost{read_case(entry), read_path(entry.at("path"), known), read_line(entry.at("points"))};
    once(entry, to_string(cost.measured_case) + " by " + cost.path);
    table.costs.push_back(std::move(cost));
  }
  for (size_t i = 0, n = splits.items(0, kMostEntries); i < n; ++i) {
    const Reader entry = splits.item(i);
    entry.only({"op", "shape", "pair", "parts", "minimum part", "align", "points"});
    SplitCost split{read_case(entry), read_split(entry, known), read_line(entry.at("points"))};
    once(entry, to_string(split.measured_case) + " by " + describe(split.split));
    table.splits.push_back(std::move(split));
  }
}

// ---- writing

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string print_points(std::span<const Point> points) {
  json list = json::array();
  for (const Point& p : points)
    list.push_back(p.spread > 0 ? json{p.bytes, p.microseconds, p.spread} : json{p.bytes, p.microseconds});
  return dump(list);
}

/// Writes the object by hand, so that the keys are in the order in which a person reads them.
template <typename Entry>
std::string print_entry(const Entry& entry, const std::string& subject) {
  return format("{{\"op\": {}, \"shape\": {}, \"pair\": {}, {}, \"points\": {}}}",
                dump(to_string(entry.measured_case.op)), dump(to_string(entry.measured_case.shape)),
                dump(to_string(entry.measured_case.pair)), subject, print_points(entry.line.points()));
}

std::string print_list(const std::string& name, const std::vector<std::string>& lines) {
  std::string text = format("  {}: [", dump(name));
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "\n    " : ",\n    ") + lines[i];
  return text + (lines.empty() ? "]" : "\n  ]");
}

}  // namespace

Table parse_table(std::string_view text, const std::string& name, const KnownPaths& known) {
  const auto parsed = parse_json(text, name, kTableRemedy);
  const Reader top(*parsed, name, kTableRemedy);
  // Checks format and version first: in a file of another kind nothing else is meaningful.
  if (const Reader kind = top.at("format"); kind.text() != kFormat)
    kind.refuse(
        format("is {}, not {}: this is another kind of file", in_quotes(kind.text()), in_quotes(kFormat)));
  if (const Reader version = top.at("version"); version.whole(0, UINT64_MAX) != kTableVersion)
    version.refuse(
        format("is {}; this Peerway reads version {}", version.whole(0, UINT64_MAX), kTableVersion));
  top.only({"format", "version", "about", "tool", "date", "machine", "staging chunk", "unavailable", "costs",
            "splits"});
  if (const auto about = top.find("about")) (void)about->text();
  Table table;
  table.tool = top.at("tool").text();
  table.date = top.at("date").text();
  table.machine = read_machine(top.at("machine"));
  table.staging_chunk_bytes = top.at("staging chunk").whole(0, uint64_t{1} << 40);
  read_entries(top, known, table);
  return table;
}

std::string print_table(const Table& table) {
  std::vector<std::string> missing, costs, splits, fields;
  for (const MissingPath& m : table.missing)
    missing.push_back(format("{{\"pair\": {}, \"path\": {}, \"why\": {}}}", dump(to_string(m.pair)),
                             dump(m.path), dump(m.why)));
  for (const Cost& cost : table.costs)
    costs.push_back(print_entry(cost, format("\"path\": {}", dump(cost.path))));
  for (const SplitCost& split : table.splits) {
    json parts = json::array();
    for (const SplitPart& part : split.split.parts) parts.push_back(json{part.path, part.share});
    splits.push_back(print_entry(split, format("\"parts\": {}, \"minimum part\": {}, \"align\": {}",
                                               dump(parts), split.split.minimum_part, split.split.align)));
  }
  std::string text = format("{{\n  \"format\": {},\n  \"version\": {},\n  \"about\": {},\n", dump(kFormat),
                            kTableVersion, dump(kAbout));
  text += format("  \"tool\": {},\n  \"date\": {},\n", dump(table.tool), dump(table.date));
  text += format("  \"machine\": {{\"hash\": {}, \"fields\": {}}},\n", dump(machine_hash(table.machine)),
                 dump(json(table.machine)));
  text += format("  \"staging chunk\": {},\n", table.staging_chunk_bytes);
  text += print_list("unavailable", missing) + ",\n" + print_list("costs", costs) + ",\n";
  return text + print_list("splits", splits) + "\n}\n";
}

}  // namespace pw::route
