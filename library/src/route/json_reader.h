// Reads a JSON file that a person may have edited. Every value is checked; the error for a wrong value has
// its file, its place and what is allowed there. Used for the route table and the rules file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>  // all of it takes a compiler seconds in each place
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pw::route {

/// Parses the text. Throws Error(PW_BAD_TABLE), with line and column, if the text is not JSON, nests too
/// deeply, or has a key twice. `remedy` ends every message: what to do about a bad file.
std::shared_ptr<const nlohmann::json> parse_json(std::string_view text, const std::string& file,
                                                 const std::string& remedy);

/// One value and its place. All reading functions throw Error(PW_BAD_TABLE).
class Reader {
 public:
  Reader(const nlohmann::json& value, const std::string& file, const std::string& remedy,
         std::string place = "")
      : value_(value), file_(file), remedy_(remedy), place_(std::move(place)) {}

  /// Refuses keys other than these, with a suggestion ("did you mean").
  void only(std::initializer_list<std::string_view> allowed_keys) const;
  [[nodiscard]] Reader at(std::string_view key) const;                   ///< throws if it is missing
  [[nodiscard]] std::optional<Reader> find(std::string_view key) const;  ///< empty if it is missing
  [[nodiscard]] Reader item(size_t index) const;
  /// Returns the length of a list, which must have between `least` and `most` items.
  [[nodiscard]] size_t items(size_t least, size_t most) const;

  [[nodiscard]] std::vector<std::string> keys() const;  ///< of an object
  void object() const;                                  ///< refuses anything but an object
  [[nodiscard]] bool is_object() const;

  [[nodiscard]] std::string text(size_t longest = 4096) const;
  [[nodiscard]] uint64_t whole(uint64_t least, uint64_t most) const;
  [[nodiscard]] double number(double least, double most) const;
  [[nodiscard]] bool flag() const;  ///< true or false

  /// Throws an error of the form `FILE: PLACE: problem; remedy`.
  [[noreturn]] void refuse(const std::string& problem) const;

  /// Runs a parser on the value's text; reports an error that it throws with file and place.
  template <typename Parse>
  auto parsed(Parse&& parse) const;

 private:
  [[nodiscard]] std::string shown() const;

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
