// Reads JSON files that people may edit: the route table and the file of rules. Each reading function states
// what it allows. If the file has anything else there, the error names the file, the place in it (such as
// costs[2].path) and what is allowed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>  // the full header would add seconds to the compilation of each user
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pw::route {

/// Parses the text of `file`. Throws Error(PW_BAD_TABLE) if the text is not JSON (with line and column),
/// nests too deeply, or has a key twice in an object. Every message ends with `remedy`: what to do about a
/// bad file.
std::shared_ptr<const nlohmann::json> parse_json(std::string_view text, const std::string& file,
                                                 const std::string& remedy);

/// One value of a file, and its place there. Does not own the value, the file's name or the remedy. All
/// reading functions throw Error(PW_BAD_TABLE) for a value that they do not allow.
class Reader {
 public:
  Reader(const nlohmann::json& value, const std::string& file, const std::string& remedy,
         std::string place = "")
      : value_(value), file_(file), remedy_(remedy), place_(std::move(place)) {}

  /// Refuses keys other than these, with a suggestion ("did you mean").
  void only(std::initializer_list<std::string_view> allowed_keys) const;
  [[nodiscard]] Reader at(std::string_view key) const;                   ///< throws if it is missing
  [[nodiscard]] std::optional<Reader> find(std::string_view key) const;  ///< empty if it is missing
  [[nodiscard]] Reader item(size_t index) const;                         ///< of a list; call items() first
  /// Returns the length of a list, which must have between `least` and `most` items.
  [[nodiscard]] size_t items(size_t least, size_t most) const;

  [[nodiscard]] std::vector<std::string> keys() const;  ///< of an object
  void object() const;                                  ///< throws unless the value is an object
  [[nodiscard]] bool is_object() const;

  [[nodiscard]] std::string text(size_t longest = 4096) const;
  [[nodiscard]] uint64_t whole(uint64_t least, uint64_t most) const;  ///< a whole number
  [[nodiscard]] double number(double least, double most) const;
  [[nodiscard]] bool flag() const;  ///< true or false

  /// Throws an error of the form `FILE: PLACE: problem; remedy`.
  [[noreturn]] void refuse(const std::string& problem) const;

  /// Returns what `parse` makes of the value's text. If `parse` throws an Error, its message becomes the
  /// problem of refuse().
  template <typename Parse>
  auto parsed(Parse&& parse) const;

 private:
  [[nodiscard]] std::string shown() const;  ///< the value, short enough for an error message

  const nlohmann::json& value_;
  const std::string& file_;
  const std::string& remedy_;
  std::string place_;
};

}  // namespace pw::route

#include "base/status.h"

template <typename Parse>
auto pw::route::Reader::parsed(Parse&& parse) const {
  const std::string value = text();
  try {
    return parse(value);
  } catch (const pw::Error& error) {
    refuse(error.what());
  }
}
