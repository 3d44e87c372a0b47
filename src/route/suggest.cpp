// Quoting and did-you-mean for the messages of the route layer.
#include "route/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace pw::route {
namespace {

constexpr size_t kLongest = 60;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text.substr(0, kLongest)) out += (c >= 0 && c < 0x20) || c == 0x7f ? '?' : c;
  if (text.size() > kLongest) out += "...";
  return out + "\"";
}

std::string nearest(std::string_view text, std::span<const std::string> words) {
  std::string best;
  if (text.size() > kLongest) return best;  // no typing slip makes a name that long
  size_t limit = std::max<size_t>(1, text.size() / 3) + 1;
  for (const std::string& word : words) {
    const size_t distance = edit_distance(text, word);
    if (distance >= limit) continue;
    limit = distance;
    best = word;
  }
  return best;
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
