// The parts of a table other than its text: the machine's fingerprint, and the file.
#include "route/table.h"

#include "base/format.h"
#include "base/hash.h"
#include "base/status.h"
#include "route/file.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

constexpr size_t kMostTableBytes = 16 << 20;

}  // namespace

std::string machine_hash(const Machine& machine) {
  uint64_t hash = kNoHash;
  const auto add = [&](std::string_view text) { hash = hash_of(text, hash); };
  for (const auto& [name, value] : machine) {
    add(format("{}:{}=", name.size(), name));
    add(format("{}:{}\n", value.size(), value));
  }
  return format("{:016x}", hash);
}

Table load_table(const std::string& file, const KnownPaths& known) {
  return parse_table(read_file(file, kMostTableBytes, "run `peerway tune` to measure a new one"), file,
                     known);
}

void save_table(const Table& table, const std::string& file) { write_file(file, print_table(table)); }

void check_machine(const Table& table, const Machine& machine, const std::string& name) {
  if (table.machine == machine) return;
  std::string differences;
  const auto add = [&](const std::string& field, const std::string& then, const std::string& now) {
    if (then == now) return;
    differences += format("{}{} was {} and is {}", differences.empty() ? "" : "; ", field, then, now);
  };
  const auto value = [](const Machine& m, const std::string& field) {
    const auto entry = m.find(field);
    return entry == m.end() ? "absent" : in_quotes(entry->second);
  };
  Machine fields = table.machine;
  fields.insert(machine.begin(), machine.end());
  for (const auto& entry : fields)
    add(entry.first, value(table.machine, entry.first), value(machine, entry.first));
  throw Error(PW_BAD_TABLE, format("{}: was measured on another machine, or this one has changed ({}); run "
                                   "`peerway tune` to measure a new one",
                                   name, differences));
}

}  // namespace pw::route
