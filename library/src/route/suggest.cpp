// Quotes values and makes suggestions ("did you mean") for the messages of the route layer.
#include "route/suggest.h"

#include "base/config_value.h"

namespace pw::route {
namespace {

constexpr size_t kLongest = 60;

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text.substr(0, kLongest)) out += (c >= 0 && c < 0x20) || c == 0x7f ? '?' : c;
  if (text.size() > kLongest) out += "...";
  return out + "\"";
}

std::string nearest(std::string_view text, std::span<const std::string> words) {
  if (text.size() > kLongest) return {};  // no typing error makes a name that long
  return std::string(nearest_name(text, words));
}

std::string allowed(std::string_view text, std::span<const std::string> words) {
  std::string out;
  if (const std::string best = nearest(text, words); !best.empty())
    out = "; did you mean " + in_quotes(best) + "?";
  if (words.empty()) return out;
  out += out.empty() ? "; allowed " : " Allowed ";
  out += words.size() == 1 ? "is " : "are ";
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " and " : ", ";
    out += in_quotes(words[i]);
  }
  return out;
}

}  // namespace pw::route
