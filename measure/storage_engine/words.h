// The arguments of an operation (words such as size=4096) and its answer (one JSON object).
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace pw::storage {

// A system call that failed: the program answers with its errno, and where.
struct Failed : std::runtime_error {
  Failed(const std::string& call, int error, uint64_t moved = 0)
      : std::runtime_error(call), number(error), at(moved) {}
  int number;
  uint64_t at;  // bytes of the file that had been moved until then
};

struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline int must(int result, const char* call, uint64_t at = 0) {
  if (result < 0) throw Failed(call, errno, at);
  return result;
}

class Words {
 public:
  Words(int count, char** words) {
    for (int i = 0; i < count; ++i) {
      const std::string_view word = words[i];
      const size_t equals = word.find('=');
      if (equals == word.npos) throw Misuse("a word without '=': " + std::string(word));
      values_[std::string(word.substr(0, equals))] = word.substr(equals + 1);
    }
  }

  std::string text(const std::string& name) const {
    const auto place = values_.find(name);
    if (place == values_.end()) throw Misuse(name + "= is missing");
    return place->second;
  }

  uint64_t number(const std::string& name, uint64_t otherwise) const {
    return values_.count(name) ? number(name) : otherwise;
  }

  uint64_t number(const std::string& name) const {
    const std::string value = text(name);
    size_t end = 0;
    uint64_t parsed = 0;
    try {
      parsed = std::stoull(value, &end);
    } catch (const std::exception&) {
      end = 0;
    }
    if (end == 0 || end != value.size() || value[0] == '-')
      throw Misuse(name + "=" + value + " is no number");
    return parsed;
  }

 private:
  std::map<std::string, std::string> values_;
};

// An object of JSON, member by member.
class Answer {
 public:
  Answer& add(const std::string& name, uint64_t value) { return raw(name, std::to_string(value)); }
  Answer& add(const std::string& name, bool value) { return raw(name, value ? "true" : "false"); }
  Answer& add(const std::string& name, const std::string& value) { return raw(name, quoted(value)); }
  Answer& add(const std::string& name, const char* value) { return raw(name, quoted(value)); }

  template <typename Several>
  Answer& list(const std::string& name, const Several& values) {
    std::string text = "[";
    for (const auto& value : values) {
      if (text.size() > 1) text += ',';
      if constexpr (std::is_convertible_v<decltype(value), std::string>)
        text += quoted(value);
      else
        text += std::to_string(value);
    }
    return raw(name, text + "]");
  }

  std::string text() const { return "{" + members_ + "}"; }

 private:
  Answer& raw(const std::string& name, const std::string& value) {
    members_ += (members_.empty() ? "" : ",") + quoted(name) + ":" + value;
    return *this;
  }

  // Names of files may be any bytes: what is not plain ASCII becomes an escape of its byte.
  static std::string quoted(std::string_view text) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out = "\"";
    for (const unsigned char c : text) {
      if (c == '"' || c == '\\')
        (out += '\\') += static_cast<char>(c);
      else if (c >= 0x20 && c < 0x7f)
        out += static_cast<char>(c);
      else
        ((out += "\\u00") += digits[c >> 4]) += digits[c & 15];
    }
    return out + "\"";
  }

  std::string members_;
};

}  // namespace pw::storage
