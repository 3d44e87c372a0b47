// Reads the rules file.
#include <fnmatch.h>

#include <algorithm>

#include "base/format.h"
#include "base/status.h"
#include "route/file.h"
#include "route/json_reader.h"
#include "route/rules.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

constexpr size_t kMostRules = 256;
constexpr size_t kMostRulesBytes = 1 << 20;
const std::string kRulesRemedy = "correct it, or remove the file to let the measured costs decide";

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (size_t start = 0;;) {
    const size_t end = text.find(separator, start);
    out.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return out;
    start = end + 1;
  }
}

/// Returns the family that a path of this name would belong to, or null.
const PathFamily* could_be_of(const KnownPaths& known, const std::string& path) {
  return is_path_name(path) ? family_of(known.families, path) : nullptr;
}

/// Whether the pattern names an existing path: the path itself, all paths that begin with it, or a glob that
/// matches one.
bool exists(const std::string& pattern, std::span<const std::string> paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    return fnmatch(pattern.c_str(), path.c_str(), 0) == 0 || path.starts_with(pattern + "/");
  });
}

/// Returns the error for an unknown path, with what to do.
std::string why_not(const std::string& path, const KnownPaths& known) {
  const PathFamily* family = could_be_of(known, path);
  if (family == nullptr) return format("{} is not a path{}", in_quotes(path), allowed(path, known.names));
  const std::string member = path.substr(family->prefix.size());
  std::vector<std::string> members;
  for (const std::string& other : known.names)
    if (other.starts_with(family->prefix)) members.push_back(other);
  const std::string near = nearest(path, members);
  return format("no {} '{}' in this context; {}set {}={} ({})", family->member, member,
                near.empty() ? "" : format("did you mean {}? Else ", in_quotes(near)), family->setting,
                member, family->entry);
}

/// Parses comma-separated patterns; a split is its paths joined by +. Throws Error(PW_INVALID_ARGUMENT). If
/// `any_member` is true every name of a family is allowed, because jobs that share a rules file have
/// different members.
std::vector<std::string> path_patterns(std::string_view text, const KnownPaths& known, bool any_member) {
  std::vector<std::string> patterns = split_at(text, ',');
  for (const std::string& pattern : patterns)
    for (const std::string& path : split_at(pattern, '+'))
      if (!exists(path, known.names) && !(any_member && could_be_of(known, path) != nullptr))
        throw Error(PW_INVALID_ARGUMENT, why_not(path, known));
  return patterns;
}

/// Returns a pattern that matches at least one of the names; otherwise "putt" would be a rule that never
/// applies.
std::string pattern_of(const Reader& reader, std::span<const std::string> names) {
  std::string pattern = reader.text();
  const auto hit = [&](const std::string& name) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
  if (!std::any_of(names.begin(), names.end(), hit))
    reader.refuse(format("{} matches nothing{}", in_quotes(pattern), allowed(pattern, names)));
  return pattern;
}

/// New kinds of devices and links may come, so this refuses only what can never be part of a pair.
std::string pair_pattern(const Reader& reader) {
  std::string pattern = reader.text(256);
  const bool glob = pattern.find_first_of("*?[") != std::string::npos;
  if (!glob) (void)reader.parsed(parse_pair_class);
  const auto odd = std::find_if(pattern.begin(), pattern.end(), [](char c) {
    return !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
           std::string_view("*?[]!-_>/:").find(c) == std::string_view::npos;
  });
  if (odd != pattern.end())
    reader.refuse(
        format("{} has a {}, which is in no pair; pairs look like \"cuda->cuda/nvlink\", and * stands for "
               "anything",
               in_quotes(pattern), in_quotes(std::string(1, *odd))));
  return pattern;
}

Rule read_rule(const Reader& reader, const std::string& origin, const KnownPaths& known) {
  static const std::vector<std::string> ops = {to_string(Op::put), to_string(Op::get), to_string(Op::send)};
  static const std::vector<std::string> shapes = [] {
    std::vector<std::string> names;
    for (ShapeClass shape : kShapeClasses) names.push_back(to_string(shape));
    return names;
  }();
  reader.only({"op", "pair", "shape", "bytes", "use", "forbid", "comment"});
  Rule rule;
  rule.origin = origin;
  if (const auto op = reader.find("op")) rule.op = pattern_of(*op, ops);
  if (const auto shape = reader.find("shape")) rule.shape = pattern_of(*shape, shapes);
  if (const auto pair = reader.find("pair")) rule.pair = pair_pattern(*pair);
  if (const auto bytes = reader.find("bytes")) rule.bytes = bytes->parsed(parse_size_range);
  if (const auto comment = reader.find("comment")) (void)comment->text();
  const auto use = reader.find("use"), forbid = reader.find("forbid");
  if (use.has_value() == forbid.has_value())
    reader.refuse(use ? "has both \"use\" and \"forbid\"; write two rules" : "needs \"use\" or \"forbid\"");
  rule.forbid = forbid.has_value();
  rule.paths =
      (use ? use : forbid)->parsed([&](const std::string& text) { return path_patterns(text, known, true); });
  return rule;
}

}  // namespace

Rule use_rule(std::string_view paths, const KnownPaths& known) {
  try {
    Rule rule;
    rule.origin = format("the restriction to {}", in_quotes(paths));
    rule.paths = path_patterns(paths, known, false);
    return rule;
  } catch (const Error& error) {
    throw Error(error.status(), error.what());
  }
}

Rules parse_rules(std::string_view text, const std::string& file, const KnownPaths& known) {
  const auto json = parse_json(text, file, kRulesRemedy);
  const Reader top(*json, file, kRulesRemedy);
  top.only({"rules", "comment"});
  if (const auto comment = top.find("comment")) (void)comment->text();
  const Reader list = top.at("rules");
  Rules rules;
  const size_t count = list.items(0, kMostRules);
  for (size_t i = 0; i < count; ++i)
    rules.add(read_rule(list.item(i), format("{}: rules[{}]", file, i), known));
  return rules;
}

Rules load_rules(const std::string& file, const KnownPaths& known) {
  return parse_rules(read_file(file, kMostRulesBytes, kRulesRemedy), file, known);
}

}  // namespace pw::route
