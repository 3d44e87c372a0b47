#include "torus/options.h"

#include <charconv>
#include <cstdlib>

#include "base/format.h"
#include "torus/failure.h"

namespace pw::torus {
namespace {

std::optional<uint32_t> whole_number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void read_option(std::string_view word, Options& options) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "file") {
    options.file = value;
  } else if (name == "counters") {
    options.counters = value;
  } else if (name == "node") {
    options.node = whole_number(value);
    if (!options.node)
      throw Failure(PW_NIC_INVALID, format("torus: node={} is not the number of a node (0, 1, ...)", value));
  } else {
    throw Failure(PW_NIC_INVALID,
                  format("torus: there is no option '{}'; there are file=, node= and counters=", name));
  }
}

}  // namespace

Options parse_options(std::string_view text) {
  Options options;
  if (text.find('=') == std::string_view::npos) {
    options.file = text;
    return options;
  }
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (word.find('=') == std::string_view::npos)
      throw Failure(PW_NIC_INVALID,
                    format("torus: '{}' among options has no value; options are file=PATH, "
                           "node=N and counters=PATH, and a torus file beside others is file={}",
                           word, word));
    read_option(word, options);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return options;
}

std::optional<uint32_t> launcher_rank() {
  for (const char* name : {"PEERWAY_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    if (const auto rank = whole_number(value)) return rank;
  }
  return std::nullopt;
}

}  // namespace pw::torus
