// Parses the command line with getopt_long of libc.
#include "options.h"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>

#include "../hpl/broadcast.h"

namespace scale {

namespace {

constexpr const char* kHelp = R"(usage: %s [options]

Simulates a communication of all nodes of a machine with SimGrid, and prints a JSON object for each size.

  --machine SHAPE       torus:8x8x4, or fat-tree:16x64/1x16 (children and parents   torus:4x4
                        at each level, from the nodes up)
  --pattern NAME        message, halo/put, halo/two-sided, allreduce/rings,         halo/put
                        allreduce/doubling or hpl
  --grid AxBx..         the ranks, first dimension the fastest                      as the torus
  --bytes N,...         of the message, of a face, or of the vector                 1024
  --shuffle SEED        ranks on nodes by chance; else near to their neighbours
  --parts N             of an allreduce by rings: 2 a dimension use all links       1
  --to NODE             of a message from node 0                                    1
  --hop-ns X            of a hop                                                    129
  --message-ns X        of a small message over one hop, both ends included         850
  --link-gbits X        of a link, in each direction                                75
  --host-gbits X        of a node, in each direction, all links together; 0: any    0
  --eager BYTES         two-sided messages above it are announced and fetched       8192

Of hpl, whose grid is P x Q:

  --n N,...             equations                                                   65536
  --nb NB               rows and columns of a block                                 1024
  --panels COUNT        that are simulated, evenly spread over all                  64
  --bcast VARIANT       1ring, 1ringM, 2ring, 2ringM, tree or star                  1ringM
  --pivots HOW          all: an exchange with all ranks of the column at once;      all
                        doubling: with one after another
  --exchange HOW        of rows: by one message each of as much time,               alike
                        or by all messages: alike or whole
  --gemm-tflops X       of DGEMM on a GPU                                           50
  --column-us X         kernels of a panel, for each of its columns                 10
  --element-ps X        rows moved and solved, for each element of U                200
)";

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& allowed) {
  throw std::runtime_error("scale: --" + option + " is '" + text + "'; give " + allowed + ".");
}

template <class Number>
Number number(const std::string& option, const std::string& text, Number least, Number most) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= least && value <= most))
    refuse(option, text, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

std::vector<uint64_t> numbers(const std::string& option, const std::string& text, char between) {
  std::vector<uint64_t> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t next = std::min(text.find(between, at), text.size());
    all.push_back(number<uint64_t>(option, text.substr(at, next - at), 1, uint64_t{1} << 40));
    at = next + 1;
  }
  return all;
}

std::string broadcast(const std::string& text) {
  std::string all;
  for (const hpl::Variant variant : hpl::all_variants()) {
    if (text == hpl::to_string(variant)) return text;
    all += (all.empty() ? "" : ", ") + hpl::to_string(variant);
  }
  refuse("bcast", text, "one of " + all);
}

void set(const std::string& option, const std::string& text, Options& options) {
  constexpr double kLargestOption = 1e9;
  if (option == "machine") options.machine = text;
  if (option == "pattern") options.pattern = text;
  if (option == "grid") options.grid = numbers(option, text, 'x');
  if (option == "bytes") options.bytes = numbers(option, text, ',');
  if (option == "shuffle") {
    options.shuffle = true;
    options.seed = number<uint64_t>(option, text, 0, ~uint64_t{0});
  }
  if (option == "parts") options.parts = number<size_t>(option, text, 1, 64);
  if (option == "to") options.to = number<size_t>(option, text, 0, 1 << 20);
  if (option == "eager") options.eager = number<uint64_t>(option, text, 0, ~uint64_t{0});
  if (option == "n") options.n = numbers(option, text, ',');
  if (option == "nb") options.linpack.nb = number<uint64_t>(option, text, 1, 1 << 16);
  if (option == "panels") options.linpack.panels = number<uint64_t>(option, text, 1, 1 << 30);
  if (option == "bcast") options.linpack.broadcast = broadcast(text);
  if (option == "pivots") {
    if (text != "all" && text != "doubling") refuse(option, text, "all or doubling");
    options.linpack.doubling = text == "doubling";
  }
  if (option == "exchange") {
    if (text != "alike" && text != "whole") refuse(option, text, "alike or whole");
    options.linpack.whole = text == "whole";
  }
  Kernels& kernels = options.linpack.kernels;
  if (option == "gemm-tflops") kernels.gemm = number<double>(option, text, 1e-6, kLargestOption) * 1e6;
  if (option == "column-us") kernels.column_us = number<double>(option, text, 0, kLargestOption);
  if (option == "element-ps") kernels.element_us = number<double>(option, text, 0, kLargestOption) / 1e6;
  if (option == "hop-ns") options.nic.hop_us = number<double>(option, text, 0, kLargestOption) / 1e3;
  if (option == "message-ns") options.nic.message_us = number<double>(option, text, 0, kLargestOption) / 1e3;
  if (option == "link-gbits") options.nic.link = number<double>(option, text, 1e-3, kLargestOption) * 1e3 / 8;
  if (option == "host-gbits") options.nic.host = number<double>(option, text, 0, kLargestOption) * 1e3 / 8;
}

void check(Options& options) {
  options.shape = shape_of(options.machine);
  const size_t nodes = volume(options.shape.extents);
  if (nodes < 2 || nodes > 65536)
    throw std::runtime_error("scale: " + options.machine + " has " + std::to_string(nodes) +
                             " nodes; give 2 to 65536.");
  if (options.grid.empty()) options.grid = options.shape.extents;
  if (volume(options.grid) != nodes)
    throw std::runtime_error("scale: --grid has " + std::to_string(volume(options.grid)) + " ranks, and " +
                             options.machine + " " + std::to_string(nodes) + " nodes; give as many of both.");
  if (options.to == 0 || options.to >= nodes)
    refuse("to", std::to_string(options.to), "a node from 1 to " + std::to_string(nodes - 1));
  if (options.nic.message_us <= options.nic.hop_us)
    throw std::runtime_error("scale: --message-ns includes a hop; give more than --hop-ns.");
}

}  // namespace

bool parse(int argc, char** argv, Options& options) {
  const char* names[] = {"help",       "machine",     "pattern",   "grid",      "bytes",      "shuffle",
                         "parts",      "to",          "eager",     "hop-ns",    "message-ns", "link-gbits",
                         "host-gbits", "n",           "nb",        "panels",    "bcast",      "pivots",
                         "exchange",   "gemm-tflops", "column-us", "element-ps"};
  std::vector<option> known;
  for (const char* name : names)
    known.push_back({name, name == names[0] ? no_argument : required_argument, nullptr, 0});
  known.push_back({nullptr, 0, nullptr, 0});
  for (int index = 0, code = 0; (code = getopt_long(argc, argv, "", known.data(), &index)) != -1;) {
    if (code == '?') throw std::runtime_error("scale: --help lists the options.");
    if (index == 0) {
      std::printf(kHelp, argv[0]);
      return false;
    }
    set(names[index], optarg, options);
  }
  if (optind < argc) refuse("help", argv[optind], "options only");
  check(options);
  return true;
}

}  // namespace scale
