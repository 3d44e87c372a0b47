// Reads HPL.dat: 31 lines, identified by their numbers; the values come first in each line.
#include <fstream>
#include <sstream>

#include "broadcast.h"
#include "options.h"

namespace hpl {

namespace {

class Lines {
 public:
  explicit Lines(std::string file) : file_(std::move(file)) {
    std::ifstream in(file_);
    if (!in) throw BadOption("hpl: " + file_ + " cannot be read; give an HPL.dat.");
    for (std::string line; std::getline(in, line);) lines_.push_back(line);
  }

  template <typename Number>
  std::vector<Number> numbers(size_t line, size_t count, double least, double most) const {
    std::istringstream words(at(line));
    std::vector<Number> all;
    double value = 0;
    while (all.size() < count && words >> value) {
      if (value < least || value > most) refuse(line, least, most);
      all.push_back(static_cast<Number>(value));
    }
    if (all.size() < count)
      throw BadOption("hpl: line " + std::to_string(line) + " of " + file_ + " has " +
                      std::to_string(all.size()) + " numbers where " + std::to_string(count) +
                      " are announced: '" + at(line) + "'.");
    return all;
  }
  template <typename Number>
  Number number(size_t line, double least, double most) const {
    return numbers<Number>(line, 1, least, most)[0];
  }
  /// Returns the values of a line; the line before it has their number.
  template <typename Number>
  std::vector<Number> counted(size_t line, double least, double most) const {
    return numbers<Number>(line, number<size_t>(line - 1, 1, 1000), least, most);
  }

 private:
  const std::string& at(size_t line) const {
    if (line > lines_.size())
      throw BadOption("hpl: " + file_ + " has " + std::to_string(lines_.size()) +
                      " lines; HPL.dat has 31, and line " + std::to_string(line) + " is needed.");
    return lines_[line - 1];
  }
  [[noreturn]] void refuse(size_t line, double least, double most) const {
    std::ostringstream text;
    text << "hpl: line " << line << " of " << file_ << " is '" << at(line) << "'; give numbers from " << least
         << " to " << most << ".";
    throw BadOption(text.str());
  }

  std::string file_;
  std::vector<std::string> lines_;
};

void note(Options& options, const Lines& lines, const char* what, size_t line, int only,
          const char* meaning) {
  const int found = lines.number<int>(line, -1e9, 1e9);
  if (found == only) return;
  options.notes.push_back("HPL.dat: " + std::string(what) + " " + std::to_string(found) + " is read as " +
                          std::to_string(only) + " (" + meaning + "), the only one here");
}

}  // namespace

void read_dat(const std::string& file, Options& options) {
  const Lines lines(file);
  options.n = lines.counted<int64_t>(6, 1, 1 << 30);
  options.nb = lines.counted<int64_t>(8, 1, 1 << 16);
  options.by_rows = lines.number<int>(9, 0, 1) == 0;
  const auto rows = lines.numbers<int>(11, lines.number<size_t>(10, 1, 1000), 1, 1 << 20);
  const auto columns = lines.numbers<int>(12, rows.size(), 1, 1 << 20);
  options.grids.clear();
  for (size_t i = 0; i < rows.size(); ++i) options.grids.emplace_back(rows[i], columns[i]);
  options.threshold = lines.number<double>(13, -1e300, 1e300);
  options.pfacts.clear();
  for (const int number : lines.counted<int>(15, 0, 2))
    options.pfacts.push_back(static_cast<Looking>(number));
  options.leaves = lines.counted<int>(17, 1, 1 << 16);
  options.rfacts.clear();
  for (const int number : lines.counted<int>(21, 0, 2))
    options.rfacts.push_back(static_cast<Looking>(number));
  options.broadcasts.clear();
  for (const int number : lines.counted<int>(23, 0, 7))
    options.broadcasts.push_back(to_string(static_cast<Variant>(number)));
  options.depths = lines.counted<int>(25, 0, 1);
  note(options, lines, "NDIV", 19, 2, "halves");
  note(options, lines, "SWAP", 26, 1, "all rows at once");
  note(options, lines, "L1", 28, 1, "not transposed");
  note(options, lines, "U", 29, 1, "not transposed");
}

}  // namespace hpl
