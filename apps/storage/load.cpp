// A campaign on a simulated cluster (SimGrid): nodes behind a link each, file servers behind a link and a
// disk each. Reads from standard input what is to be measured, a number of a node a line, in the campaign's
// order; prints one object of JSON. load.py says what the numbers mean.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace {

namespace s4u = simgrid::s4u;

struct Load {
  size_t nodes = 0, servers = 0, at_once = 0;
  double bytes = 0, node = 0, server = 0, disk = 0, start_s = 0, local_s = 0;
};

struct Done {
  double write_s, read_s;
};

struct World {
  Load load;
  std::vector<s4u::Host*> nodes, servers, disks;
  std::deque<size_t> waiting;
  std::mt19937 random{1};
  std::vector<bool> busy;
  std::vector<Done> done;
  std::vector<double> written;  // by server
};

// The first in the order whose node has no measurement now, as the campaign's runner takes them.
bool take(World& world, size_t& node) {
  const auto next =
      std::find_if(world.waiting.begin(), world.waiting.end(), [&](size_t n) { return !world.busy[n]; });
  if (next == world.waiting.end()) return false;
  node = *next;
  world.waiting.erase(next);
  world.busy[node] = true;
  return true;
}

double moved(s4u::Host* from, s4u::Host* to, const Load& load) {
  const double before = s4u::Engine::get_clock();
  auto flow = s4u::Comm::sendto_init();
  flow->set_payload_size(static_cast<uint64_t>(load.bytes))->set_source(from)->set_destination(to);
  flow->wait();
  return s4u::Engine::get_clock() - before;
}

// A slot of the campaign: one measurement after the other, until none is left.
void measure(World& world) {
  while (!world.waiting.empty()) {
    size_t node = 0;
    if (!take(world, node)) {
      s4u::this_actor::sleep_for(0.05);
      continue;
    }
    const size_t server = world.done.size() % world.servers.size();  // files are placed in turn
    world.done.push_back({});
    const size_t own = world.done.size() - 1;
    const double luck = static_cast<double>(world.random() - world.random.min()) / world.random.max();
    s4u::this_actor::sleep_for(world.load.start_s * (0.5 + luck));  // else all slots keep step
    const double write_s = moved(world.nodes[node], world.disks[server], world.load);
    world.written[server] += world.load.bytes;
    // The server still has what was just written: its disk has no part in the read.
    const double read_s = moved(world.servers[server], world.nodes[node], world.load);
    s4u::this_actor::sleep_for(world.load.local_s);
    world.done[own] = {write_s, read_s};
    world.busy[node] = false;
  }
}

void build(World& world) {
  const Load& load = world.load;
  auto* const zone = s4u::create_star_zone("cluster");
  const auto add = [zone](const std::string& name, const std::vector<s4u::LinkInRoute>& route) {
    auto* const host = zone->create_host(name, 1e9);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, route, true);
    return host;
  };
  const auto link = [zone](const std::string& name, double rate) {
    return zone->create_split_duplex_link(name, rate)->set_latency(2e-6);
  };
  for (size_t i = 0; i < load.nodes; ++i) {
    const auto* const own = dynamic_cast<s4u::SplitDuplexLink*>(link("n" + std::to_string(i), load.node));
    world.nodes.push_back(add("node" + std::to_string(i), {{own, s4u::LinkInRoute::Direction::UP}}));
  }
  for (size_t i = 0; i < load.servers; ++i) {
    const auto* const own = dynamic_cast<s4u::SplitDuplexLink*>(link("s" + std::to_string(i), load.server));
    const auto* const disk = dynamic_cast<s4u::SplitDuplexLink*>(link("d" + std::to_string(i), load.disk));
    const auto up = s4u::LinkInRoute::Direction::UP;
    world.servers.push_back(add("server" + std::to_string(i), {{own, up}}));
    world.disks.push_back(add("disk" + std::to_string(i), {{disk, up}, {own, up}}));
  }
  zone->seal();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

int main(int count, char** words) {
  s4u::Engine engine(&count, words);
  s4u::Engine::set_config("network/model:CM02");  // flows share links fairly, and nothing is of TCP
  s4u::Engine::set_config("network/TCP-gamma:0");
  std::map<std::string, double> options;
  for (int i = 1; i + 1 < count; i += 2) options[words[i]] = std::stod(words[i + 1]);
  World world;
  Load& a = world.load;
  a.nodes = static_cast<size_t>(options.at("nodes")), a.servers = static_cast<size_t>(options.at("servers"));
  a.at_once = static_cast<size_t>(options.at("at-once")), a.bytes = options.at("bytes");
  a.node = options.at("node"), a.server = options.at("server"), a.disk = options.at("disk");
  a.start_s = options.at("start-s"), a.local_s = options.at("local-s");
  build(world);
  for (size_t node; std::cin >> node;) world.waiting.push_back(node);
  world.busy.resize(a.nodes), world.written.resize(a.servers);
  for (size_t i = 0; i < a.at_once; ++i)
    s4u::Actor::create("slot" + std::to_string(i), world.nodes[0], [&world] { measure(world); });
  engine.run();
  const double took = s4u::Engine::get_clock();
  std::vector<double> writes, reads;
  for (const Done& done : world.done) {
    writes.push_back(a.bytes / done.write_s);
    reads.push_back(a.bytes / done.read_s);
  }
  const double most = *std::max_element(world.written.begin(), world.written.end());
  std::printf("{\"measurements\": %zu, \"seconds\": %.3f, \"write_Bps\": %.0f, \"least_write_Bps\": %.0f, ",
              world.done.size(), took, median(writes), *std::min_element(writes.begin(), writes.end()));
  std::printf("\"read_Bps\": %.0f, \"least_read_Bps\": %.0f, \"disk_share\": %.6f}\n", median(reads),
              *std::min_element(reads.begin(), reads.end()), most / a.disk / took);
}
