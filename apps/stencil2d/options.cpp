// The command line, by getopt_long of libc: it is on every system, and the program is one to be read.
#include "options.h"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace stencil {

namespace {

constexpr const char* kHelp = R"(usage: %s [options]

A 2-D 5-point stencil of doubles on a grid of ranks: how fast do the halos come?

  --grid PYxPX          ranks in the two dimensions, x the fastest          1x1
  --local NYxNX         cells of each rank (weak scaling)                   256x256
  --global NYxNX        cells of all ranks together, in place of --local
  --border KIND         periodic, or fixed at 0                             periodic
  --iterations N        steps                                               1000
  --batch N             steps timed together; a CUDA graph holds as many    100, or all if fewer
  --warmup N            batches before the clock starts                     3
  --variant NAME,...    one or several of these:                            the first
                        %s
                        name: start, interior, finish, boundary in one queue; name/serial: exchange,
                        then compute; name/branch: exchange and boundary in a queue of their own
  --device DEVICE       host or cuda                                        host
  --check               compare with the eigenmodes, and small lattices with a serial run
  --phases              also time interior, boundary and exchange by themselves
  --timeout SECONDS     of each wait                                        60
  --json                print one JSON object in place of text
)";

class BadOption : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& allowed) {
  throw BadOption("stencil2d: --" + option + " is " + text + "; give " + allowed + ".");
}

uint64_t number(const std::string& option, const char* text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < least || value > most)
    refuse(option, std::string("'") + text + "'",
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

void pair(const std::string& option, const std::string& text, uint64_t most, uint64_t (&values)[2]) {
  const size_t cross = text.find('x');
  if (cross == std::string::npos)
    refuse(option, "'" + text + "'", "two numbers joined by x, rows first, as 2x4");
  values[Y] = number(option, text.substr(0, cross).c_str(), 1, most);
  values[X] = number(option, text.substr(cross + 1).c_str(), 1, most);
}

size_t choice(const std::string& option, const std::string& text, const std::vector<std::string>& choices) {
  std::string all;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (text == choices[i]) return i;
    all += (i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ") + choices[i];
  }
  refuse(option, "'" + text + "'", all);
}

std::vector<std::string> list(const std::string& option, const std::string& text,
                              const std::vector<std::string>& choices) {
  std::vector<std::string> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    all.push_back(choices[choice(option, text.substr(at, comma - at), choices)]);
    at = comma + 1;
  }
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

/// False for the help. Throws BadOption.
bool parse(int argc, char** argv, const std::vector<std::string>& variants, int rank, Options& options) {
  static constexpr option kOptions[] = {
      {"grid", 1, nullptr, 0},   {"local", 1, nullptr, 0},      {"global", 1, nullptr, 0},
      {"border", 1, nullptr, 0}, {"iterations", 1, nullptr, 0}, {"batch", 1, nullptr, 0},
      {"warmup", 1, nullptr, 0}, {"variant", 1, nullptr, 0},    {"device", 1, nullptr, 0},
      {"check", 0, nullptr, 0},  {"phases", 0, nullptr, 0},     {"timeout", 1, nullptr, 0},
      {"json", 0, nullptr, 0},   {"help", 0, nullptr, 'h'},     {nullptr, 0, nullptr, 0}};
  constexpr uint64_t kCells = uint64_t{1} << 24;  // in one dimension
  uint64_t grid[2] = {1, 1}, local[2] = {256, 256}, global[2] = {0, 0};
  bool has_local = false;
  options.variants = {variants.front()};
  int index = 0;
  opterr = 0;  // getopt would speak on every rank
  for (int code = 0; (code = getopt_long(argc, argv, "h", kOptions, &index)) != -1;) {
    if (code == '?')
      throw BadOption(std::string("stencil2d: '") + argv[optind - 1] +
                      "' is no option, or lacks its value; see --help.");
    if (code == 'h') {
      if (rank == 0) std::printf(kHelp, argv[0], joined(variants).c_str());
      return false;
    }
    const std::string name = kOptions[index].name;
    if (name == "grid") pair(name, optarg, 1 << 16, grid);
    if (name == "local") pair(name, optarg, kCells, local), has_local = true;
    if (name == "global") pair(name, optarg, kCells, global);
    if (name == "border") options.periodic = choice(name, optarg, {"periodic", "fixed"}) == 0;
    if (name == "iterations") options.iterations = number(name, optarg, 1, uint64_t{1} << 31);
    if (name == "batch") options.batch = number(name, optarg, 1, uint64_t{1} << 31);
    if (name == "warmup") options.warmup = number(name, optarg, 0, 1 << 20);
    if (name == "variant") options.variants = list(name, optarg, variants);
    if (name == "device") options.cuda = choice(name, optarg, {"host", "cuda"}) == 1;
    if (name == "check") options.check = true;
    if (name == "phases") options.phases = true;
    if (name == "timeout") options.timeout_s = static_cast<double>(number(name, optarg, 1, 86400));
    if (name == "json") options.json = true;
  }
  if (optind < argc)
    throw BadOption(std::string("stencil2d: '") + argv[optind] + "' is no option; see --help.");
  if (has_local && global[Y] != 0) throw BadOption("stencil2d: --local and --global exclude each other.");
  for (const Dim dim : {Y, X}) {
    options.grid[dim] = static_cast<int>(grid[dim]);
    options.global[dim] = global[Y] != 0 ? global[dim] : local[dim] * grid[dim];
  }
  if (options.batch == 0) options.batch = options.iterations % 100 == 0 ? 100 : options.iterations;
  if (options.iterations % options.batch != 0)
    refuse("iterations", std::to_string(options.iterations),
           "a multiple of --batch, which is " + std::to_string(options.batch));
  return true;
}

}  // namespace

Overlap overlap_of(const std::string& variant) {
  if (variant.ends_with("/serial")) return Overlap::serial;
  return variant.ends_with("/branch") ? Overlap::branch : Overlap::order;
}

std::string name_of(const std::string& variant) { return variant.substr(0, variant.find('/')); }

std::optional<int> parse_or_say(int argc, char** argv, const std::vector<std::string>& variants, int rank,
                                Options& options) {
  try {
    if (parse(argc, argv, variants, rank, options)) return std::nullopt;
  } catch (const BadOption& why) {
    if (rank == 0) std::fprintf(stderr, "%s\n", why.what());
    return kBadOption;
  }
  return 0;
}

}  // namespace stencil
