#include "torus/file.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/format.h"
#include "base/status.h"
#include "peerway/nic.h"
#include "route/json_reader.h"

namespace pw::torus {
namespace {

using route::Reader;

const std::string kRemedy = "docs/nic/torus.md describes the file";

double number_or(const Reader& reader, std::string_view key, double least, double most, double otherwise) {
  const auto value = reader.find(key);
  return value ? value->number(least, most) : otherwise;
}

bool flag_or(const Reader& reader, std::string_view key, bool otherwise) {
  const auto value = reader.find(key);
  return value ? value->flag() : otherwise;
}

uint32_t guarantees_or(const Reader& reader, std::string_view key, uint32_t otherwise) {
  const auto value = reader.find(key);
  if (!value) return otherwise;
  uint32_t guarantees = 0;
  for (size_t i = 0; i < value->items(0, 2); ++i) {
    const std::string word = value->item(i).text();
    if (word == "puts_in_order")
      guarantees |= PW_NIC_PUTS_IN_ORDER;
    else if (word == "gets_behind_puts")
      guarantees |= PW_NIC_GETS_BEHIND_PUTS;
    else
      value->item(i).refuse(
          format("'{}' is not an ordering guarantee; there are puts_in_order and gets_behind_puts", word));
  }
  return guarantees;
}

void read_extents(const Reader& reader, TorusFile& torus) {
  if (const auto extents = reader.find("extents")) {
    torus.extents.clear();
    uint64_t nodes = 1;
    for (size_t i = 0; i < extents->items(1, PW_NIC_DIMENSIONS); ++i) {
      torus.extents.push_back(static_cast<uint32_t>(extents->item(i).whole(1, 1 << 20)));
      nodes *= torus.extents.back();
      if (nodes > kMostEndpoints)
        extents->refuse(format("makes {} nodes or more; at most {} are possible", nodes, kMostEndpoints));
    }
  }
  const uint32_t room = kMostEndpoints / torus.node_count();
  torus.contexts = room;
  if (const auto contexts = reader.find("contexts")) {
    torus.contexts = static_cast<uint32_t>(contexts->whole(1, UINT32_MAX));
    if (torus.contexts > room)
      contexts->refuse(format("{} nodes of {} contexts are {} endpoints; at most {} are possible",
                              torus.node_count(), torus.contexts,
                              uint64_t{torus.node_count()} * torus.contexts, kMostEndpoints));
  }
}

uint32_t node_number(const Reader& reader, const TorusFile& torus) {
  return static_cast<uint32_t>(reader.whole(0, torus.node_count() - 1));
}

// Parses "10.0.0.1" or "10.0.0.1:7000".
NodeAddress read_address(const Reader& reader, uint32_t contexts) {
  const std::string text = reader.text(64);
  const size_t colon = text.find(':');
  NodeAddress address;
  if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.ip) != 1)
    reader.refuse(format("'{}' is not an address; write 10.0.0.1 or 10.0.0.1:7000", text));
  if (colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error != std::errc() || stop != end || address.port == 0 || address.port + contexts > 65536)
      reader.refuse(format("'{}' has no port of 1 to {} ({} contexts follow one another)", text,
                           65536 - contexts, contexts));
  }
  return address;
}

void read_nodes(const Reader& reader, TorusFile& torus) {
  const auto nodes = reader.find("nodes");
  if (!nodes) return;
  torus.nodes.resize(torus.node_count());
  std::vector<bool> placed(torus.node_count());
  for (const std::string& key : nodes->keys()) {
    uint32_t node = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), node);
    if (error != std::errc() || end != key.data() + key.size() || node >= torus.node_count())
      nodes->refuse(
          format("'{}' is not a node; the extents make nodes 0 to {}", key, torus.node_count() - 1));
    torus.nodes[node] = read_address(nodes->at(key), torus.contexts);
    placed[node] = true;
  }
  const auto hole = std::find(placed.begin(), placed.end(), false);
  if (hole != placed.end())
    nodes->refuse(format("node {} is missing: the extents make {} nodes, and each needs an address",
                         hole - placed.begin(), torus.node_count()));
}

bool neighbours(const TorusFile& torus, uint32_t a, uint32_t b) {
  uint32_t apart = 0;
  for (const uint32_t extent : torus.extents) {
    const uint32_t x = a % extent, y = b % extent;
    const uint32_t distance = x > y ? x - y : y - x;
    apart += std::min(distance, extent - distance);
    a /= extent, b /= extent;
  }
  return apart == 1;
}

void read_cut(const Reader& reader, TorusFile& torus) {
  const auto cut = reader.find("cut");
  if (!cut) return;
  for (size_t i = 0; i < cut->items(0, 1 << 14); ++i) {
    const Reader pair = cut->item(i);
    static_cast<void>(pair.items(2, 2));
    const uint32_t a = node_number(pair.item(0), torus), b = node_number(pair.item(1), torus);
    if (!neighbours(torus, a, b)) pair.refuse(format("nodes {} and {} have no link to be cut", a, b));
    torus.cut.emplace_back(a, b);
  }
}

void read_dead(const Reader& reader, TorusFile& torus) {
  const auto dead = reader.find("dead");
  if (!dead) return;
  for (size_t i = 0; i < dead->items(0, kMostEndpoints); ++i) {
    const Reader death = dead->item(i);
    if (death.is_object()) {
      death.only({"node", "after_ms"});
      const double after = death.at("after_ms").number(0, 1e9);
      torus.dead.push_back({node_number(death.at("node"), torus), static_cast<uint64_t>(after * 1e6)});
    } else {
      torus.dead.push_back({node_number(death, torus), 0});
    }
  }
}

Chance read_chance(const Reader& reader, std::string_view key) {
  const auto value = reader.find(key);
  if (!value) return {};
  value->only({"probability", "us"});
  return {value->at("probability").number(0, 1), static_cast<uint64_t>(value->at("us").number(0, 1e6) * 1e3)};
}

void read_faults(const Reader& reader, Faults& faults) {
  reader.only({"seed", "delay", "reorder", "drop", "duplicate", "corrupt"});
  if (const auto seed = reader.find("seed")) faults.seed = seed->whole(0, UINT64_MAX);
  faults.delay = read_chance(reader, "delay");
  faults.reorder = read_chance(reader, "reorder");
  faults.drop = number_or(reader, "drop", 0, 0.5, 0);
  faults.duplicate = number_or(reader, "duplicate", 0, 0.5, 0);
  faults.corrupt = number_or(reader, "corrupt", 0, 0.5, 0);
}

}  // namespace

uint32_t TorusFile::node_count() const {
  return std::accumulate(extents.begin(), extents.end(), 1u, std::multiplies<>());
}

TorusFile parse_torus(std::string_view text, const std::string& name) {
  const auto json = route::parse_json(text, name, kRemedy);
  const Reader reader(*json, name, kRemedy);
  reader.only({"extents", "contexts", "hop_ns", "latency_ns", "gap_ns", "gbit_per_s", "timed", "guarantees",
               "stated", "nodes", "cut", "dead", "faults"});
  TorusFile torus;
  read_extents(reader, torus);
  torus.hop_ns = number_or(reader, "hop_ns", 0, 1e9, torus.hop_ns);
  torus.latency_ns = number_or(reader, "latency_ns", 0, 1e9, torus.latency_ns);
  torus.gap_ns = number_or(reader, "gap_ns", 0, 1e9, torus.gap_ns);
  torus.gbit_per_s = number_or(reader, "gbit_per_s", 1e-3, 1e6, torus.gbit_per_s);
  torus.timed = flag_or(reader, "timed", false);
  torus.guarantees = guarantees_or(reader, "guarantees", torus.guarantees);
  torus.stated = guarantees_or(reader, "stated", torus.guarantees);
  read_nodes(reader, torus);
  read_cut(reader, torus);
  read_dead(reader, torus);
  if (const auto faults = reader.find("faults")) read_faults(*faults, torus.faults);
  return torus;
}

TorusFile load_torus(const std::string& path, std::string& text) {
  text.clear();
  if (path.empty()) return {};
  std::ifstream in(path);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf()))
    throw Error(PW_INVALID_ARGUMENT,
                format("torus: the torus file {} cannot be read{}", path, errno_text(errno)));
  text = all.str();
  return parse_torus(text, path);
}

}  // namespace pw::torus
