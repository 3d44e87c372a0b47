// Parses the command line with getopt_long of libc, which is on every system and easy to read.
#include "options.h"

#include <getopt.h>

#include <charconv>
#include <cstring>

#include "broadcast.h"

namespace hpl {

namespace {

constexpr const char* kHelp = R"(usage: hpl [options]

High-Performance Linpack: solves a random dense system of N equations by LU with row pivoting on a P x Q grid of
ranks, and prints HPL's table. Numbers joined by commas are lists; all combinations are run.

  --n N                 equations                                                  1000
  --nb NB               rows and columns of a block                                192
  --grid PxQ            ranks in both dimensions                                   1x1
  --pmap ORDER          rows or columns: along which the ranks are numbered first  rows
  --nbmin NBMIN         columns at which the recursion in a panel ends             8
  --pfact KIND          left, crout or right: how a leaf is factorized             right
  --rfact KIND          of the recursion; with halves, which is all there is, the same operations
  --depth DEPTH         of the look-ahead: 0 or 1                                  1
  --bcast VARIANT       1ring, 1ringM, 2ring, 2ringM, long, longM, tree or star: how panels go along a row;
                        auto: the quickest, measured before the clock starts       auto
  --start WHO           of a panel's broadcast: host, when it has seen that the panel is done; stream: one of the
                        device, behind the panel, by a plan that is prepared before the clock starts (Peerway only);
                        auto: on a GPU the quicker of both, measured likewise; else the host  auto
  --dat FILE            read the numbers above and the threshold from an HPL.dat
  --comm NAME           peerway, mpi, or self (one rank)                           peerway
  --device NAME         host, cuda or hip: where the matrix is                     host
  --staging HOW         yes: messages of the matrix go through host memory; no: from and to the device's;
                        auto: yes where the MPI does not say that it is CUDA-aware (ROCm-aware)  auto
  --blas FILE           of the device: OpenBLAS, BLIS, cuBLAS, hipBLAS, rocBLAS   the first that is found
  --threads N           of each rank's BLAS on the host   the host's CPUs divided by its ranks
  --rpeak GFLOPS        of each rank, to state the fraction of it that was reached
  --threshold X         the residual passes below it                               16
  --matrix KIND         random, or constant: all elements are equal, so it is singular
  --solution FILE       write x there, as binary doubles
  --timeout SECONDS     of each wait                                               600
  --json                print one JSON object for each test in place of text
)";

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& allowed) {
  throw BadOption("hpl: --" + option + " is '" + text + "'; give " + allowed + ".");
}

template <typename Number>
Number number(const std::string& option, const std::string& text, Number least, Number most) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= least && value <= most))
    refuse(option, text, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

template <typename Read>
auto list(const std::string& text, Read&& read) {
  std::vector<decltype(read(text))> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    all.push_back(read(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return all;
}

std::pair<int, int> grid(const std::string& text) {
  const size_t cross = text.find('x');
  if (cross == std::string::npos) refuse("grid", text, "two numbers joined by x, P first, as 2x4");
  return {number("grid", text.substr(0, cross), 1, 1 << 20),
          number("grid", text.substr(cross + 1), 1, 1 << 20)};
}

std::string broadcast(const std::string& text) {
  std::string all = "auto";
  for (const Variant variant : all_variants()) all += ", " + to_string(variant);
  if ((", " + all + ",").find(", " + text + ",") == std::string::npos) refuse("bcast", text, "one of " + all);
  return text;
}

std::string one_of(const std::string& option, const std::string& text,
                   const std::vector<std::string>& choices) {
  std::string all;
  for (const std::string& choice : choices) {
    if (text == choice) return text;
    all += (all.empty() ? "" : " or ") + choice;
  }
  refuse(option, text, all);
}

Looking looking(const std::string& option, const std::string& text) {
  one_of(option, text, {"left", "crout", "right"});
  return text == "left" ? Looking::left_looking : text == "crout" ? Looking::crout : Looking::right;
}

void set(Options& options, const std::string& name, const std::string& text) {
  const auto many = [&](int64_t least, int64_t most) {
    return list(text, [&](const std::string& entry) { return number(name, entry, least, most); });
  };
  const auto few = [&](int least, int most) {
    return list(text, [&](const std::string& entry) { return number(name, entry, least, most); });
  };
  if (name == "n") options.n = many(1, 1 << 30);
  if (name == "nb") options.nb = many(1, 1 << 16);
  if (name == "grid") options.grids = list(text, grid);
  if (name == "pmap") options.by_rows = one_of(name, text, {"rows", "columns"}) == "rows";
  if (name == "nbmin") options.leaves = few(1, 1 << 16);
  if (name == "pfact")
    options.pfacts = list(text, [&](const std::string& entry) { return looking(name, entry); });
  if (name == "rfact")
    options.rfacts = list(text, [&](const std::string& entry) { return looking(name, entry); });
  if (name == "depth") options.depths = few(0, 1);
  if (name == "bcast") options.broadcasts = list(text, broadcast);
  if (name == "dat") read_dat(text, options);
  if (name == "comm") options.comm = one_of(name, text, {"peerway", "mpi", "self"});
  if (name == "device") options.device = one_of(name, text, {"host", "cuda", "hip"});
  if (name == "start") options.start = one_of(name, text, {"auto", "host", "stream"});
  if (name == "staging") options.staging = one_of(name, text, {"auto", "yes", "no"});
  if (name == "blas") options.blas = text;
  if (name == "threads") options.threads = number(name, text, 1, 1 << 16);
  if (name == "rpeak") options.rpeak = number(name, text, 1e-3, 1e12);
  if (name == "threshold") options.threshold = number(name, text, 0.0, 1e300);
  if (name == "matrix") options.constant = one_of(name, text, {"random", "constant"}) == "constant";
  if (name == "solution") options.solution = text;
  if (name == "timeout") options.timeout_s = number(name, text, 1e-3, 1e9);
  if (name == "json") options.json = true;
  if (name == "help") options.help = true;
}

}  // namespace

std::string help() { return kHelp; }

Options parse(int argc, char** argv) {
  static const option all[] = {
      {"n", 1, nullptr, 0},        {"nb", 1, nullptr, 0},        {"grid", 1, nullptr, 0},
      {"pmap", 1, nullptr, 0},     {"nbmin", 1, nullptr, 0},     {"pfact", 1, nullptr, 0},
      {"rfact", 1, nullptr, 0},    {"depth", 1, nullptr, 0},     {"bcast", 1, nullptr, 0},
      {"dat", 1, nullptr, 0},      {"comm", 1, nullptr, 0},      {"device", 1, nullptr, 0},
      {"staging", 1, nullptr, 0},  {"blas", 1, nullptr, 0},      {"threads", 1, nullptr, 0},
      {"rpeak", 1, nullptr, 0},    {"threshold", 1, nullptr, 0}, {"matrix", 1, nullptr, 0},
      {"solution", 1, nullptr, 0}, {"timeout", 1, nullptr, 0},   {"json", 0, nullptr, 0},
      {"start", 1, nullptr, 0},    {"help", 0, nullptr, 0},      {nullptr, 0, nullptr, 0}};
  Options options;
  opterr = 0;
  int index = 0;
  while (true) {
    const int word = optind;
    const int code = getopt_long(argc, argv, "", all, &index);
    if (code == -1) break;
    if (code != 0)
      throw BadOption("hpl: " + std::string(argv[word]) +
                      " is no option, or lacks its value; see hpl --help.");
    set(options, all[index].name, optarg == nullptr ? "" : optarg);
  }
  if (optind < argc) throw BadOption("hpl: " + std::string(argv[optind]) + " is no option; see hpl --help.");
  return options;
}

}  // namespace hpl
