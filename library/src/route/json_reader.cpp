// Checked reading of JSON, on top of nlohmann's parser.
#include "route/json_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/format.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;

std::string message(const std::string& file, std::string_view place, std::string_view problem,
                    std::string_view remedy) {
  return format("{}: {}{}{}; {}", file, place, place.empty() ? "" : ": ", problem, remedy);
}

/// The parser's callback, called for every part of the text. It refuses an object with two equal keys, of
/// which the parser would silently drop one, and a text that nests too deeply.
class UniqueKeys {
 public:
  UniqueKeys(const std::string& file, const std::string& remedy) : file_(file), remedy_(remedy) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest)
      throw Error(PW_BAD_TABLE, message(file_, "", format("nests deeper than {} levels", kDeepest), remedy_));
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second)
      throw Error(PW_BAD_TABLE, message(file_, "",
                                        format("the key {} comes twice in one object",
                                               in_quotes(parsed.get<std::string>())),
                                        remedy_));
    return true;
  }

 private:
  const std::string &file_, &remedy_;
  std::vector<std::set<std::string>> keys_;
};

/// Removes the prefix in brackets that nlohmann's messages have: "[json.exception.parse_error.101] parse
/// error at line 1, column 2: ...".
std::string without_prefix(std::string_view message) {
  const size_t end = message.find("] ");
  return std::string(end == std::string_view::npos ? message : message.substr(end + 2));
}

}  // namespace

std::shared_ptr<const json> parse_json(std::string_view text, const std::string& file,
                                       const std::string& remedy) {
  try {
    return std::make_shared<json>(json::parse(text, UniqueKeys(file, remedy)));
  } catch (const json::exception& error) {
    throw Error(
        PW_BAD_TABLE,
        message(file, "", format("is not JSON ({} bytes): {}", text.size(), without_prefix(error.what())),
                remedy));
  }
}

void Reader::refuse(const std::string& problem) const {
  throw Error(PW_BAD_TABLE, message(file_, place_, problem, remedy_));
}

std::string Reader::shown() const {
  if (value_.is_object()) return "an object";
  if (value_.is_array()) return format("a list of {}", value_.size());
  if (value_.is_string()) return in_quotes(value_.get_ref<const std::string&>());
  return value_.dump();
}

bool Reader::is_object() const { return value_.is_object(); }

void Reader::object() const {
  if (!is_object()) refuse(format("must be an object, not {}", shown()));
}

std::vector<std::string> Reader::keys() const {
  object();
  std::vector<std::string> all;
  for (const auto& [key, value] : value_.items()) all.push_back(key);
  return all;
}

void Reader::only(std::initializer_list<std::string_view> allowed_keys) const {
  const std::vector<std::string> words(allowed_keys.begin(), allowed_keys.end());
  for (const std::string& key : keys())
    if (std::find(words.begin(), words.end(), key) == words.end())
      refuse(format("has no key {}{}", in_quotes(key), allowed(key, words)));
}

std::optional<Reader> Reader::find(std::string_view key) const {
  object();
  const auto entry = value_.find(key);
  if (entry == value_.end()) return std::nullopt;
  return Reader(*entry, file_, remedy_, place_.empty() ? std::string(key) : format("{}.{}", place_, key));
}

Reader Reader::at(std::string_view key) const {
  auto value = find(key);
  if (!value) refuse(format("the key {} is missing", in_quotes(key)));
  return *value;
}

Reader Reader::item(size_t index) const {
  return {value_[index], file_, remedy_, format("{}[{}]", place_, index)};
}

size_t Reader::items(size_t least, size_t most) const {
  if (!value_.is_array() || value_.size() < least || value_.size() > most)
    refuse(format("must be a list of {} items, not {}",
                  least == most ? std::to_string(least) : format("{} to {}", least, most), shown()));
  return value_.size();
}

std::string Reader::text(size_t longest) const {
  if (!value_.is_string()) refuse(format("must be a text, not {}", shown()));
  auto out = value_.get<std::string>();
  if (out.size() > longest)
    refuse(format("is a text of {} bytes; at most {} are allowed", out.size(), longest));
  return out;
}

bool Reader::flag() const {
  if (!value_.is_boolean()) refuse(format("must be true or false, not {}", shown()));
  return value_.get<bool>();
}

uint64_t Reader::whole(uint64_t least, uint64_t most) const {
  if (value_.is_number_unsigned()) {
    const auto number = value_.get<uint64_t>();
    if (number >= least && number <= most) return number;
  }
  refuse(format("must be a whole number from {} to {}, not {}", least, most, shown()));
}

double Reader::number(double least, double most) const {
  if (value_.is_number()) {
    const double number = value_.get<double>();
    if (number >= least && number <= most) return number;
  }
  refuse(format("must be a number from {} to {}, not {}", least, most, shown()));
}

}  // namespace pw::route
