// In this simulation a second of SimGrid stands for a microsecond. SimGrid's clock and solver have absolute
// tolerances (1e-9 s, 1e-5 B/s) that were chosen for seconds and would be too coarse for 129 ns.
#include "machine.h"

#include <simgrid/kernel/routing/NetPoint.hpp>
#include <stdexcept>

namespace scale {

namespace {

namespace s4u = simgrid::s4u;
using NetPoint = simgrid::kernel::routing::NetPoint;

constexpr double kUnlimited = 1e12;

Extents extents_of(const std::string& text, const std::string& whole) {
  Extents extents;
  for (size_t at = 0; at <= text.size();) {
    const size_t cross = std::min(text.find('x', at), text.size());
    const std::string number = text.substr(at, cross - at);
    if (number.empty() || number.size() > 5 || number.find_first_not_of("0123456789") != std::string::npos ||
        number == "0")
      throw std::runtime_error("scale: '" + whole +
                               "' is no machine; give torus:8x8x4 or fat-tree:16x64/1x16.");
    extents.push_back(std::stoul(number));
    at = cross + 1;
  }
  return extents;
}

/// A node is a zone of its own: the host, with the NIC as its router. The cost of a message at its two ends
/// is modelled by the link between them, which is separate from the network's links, so that passing traffic
/// does not pay it.
std::pair<NetPoint*, NetPoint*> add_node(s4u::NetZone* network, unsigned long id, const Nic& nic,
                                         std::vector<s4u::Host*>& hosts) {
  const std::string name = std::to_string(id);
  s4u::NetZone* node = s4u::create_star_zone("node" + name);
  node->set_parent(network);
  hosts[id] = node->create_host("host" + name, 1.0);
  NetPoint* router = node->create_router("nic" + name);
  s4u::SplitDuplexLink* link =
      node->create_split_duplex_link("bus" + name, nic.host > 0 ? nic.host : kUnlimited);
  link->set_latency((nic.message_us - nic.hop_us) / 2);
  node->add_route(hosts[id]->get_netpoint(), nullptr, nullptr, nullptr,
                  {{link, s4u::LinkInRoute::Direction::UP}}, true);
  node->seal();
  return {node->get_netpoint(), router};
}

std::vector<unsigned> narrow(const Extents& extents) { return {extents.begin(), extents.end()}; }

}  // namespace

Shape shape_of(const std::string& text) {
  Shape shape;
  if (text.starts_with("torus:")) {
    shape.extents = extents_of(text.substr(6), text);
    return shape;
  }
  const size_t slash = text.find('/');
  if (!text.starts_with("fat-tree:") || slash == std::string::npos) extents_of("", text);  // throws
  shape.torus = false;
  shape.extents = extents_of(text.substr(9, slash - 9), text);
  shape.parents = extents_of(text.substr(slash + 1), text);
  if (shape.extents.size() != shape.parents.size())
    throw std::runtime_error("scale: '" + text + "' has " + std::to_string(shape.extents.size()) +
                             " levels down and " + std::to_string(shape.parents.size()) +
                             " up; give as many of both.");
  return shape;
}

std::vector<s4u::Host*> build(const Shape& shape, const Nic& nic) {
  std::vector<s4u::Host*> hosts(volume(shape.extents));
  const s4u::ClusterCallbacks nodes([&](s4u::NetZone* zone, const std::vector<unsigned long>&,
                                        unsigned long id) { return add_node(zone, id, nic, hosts); });
  const auto duplex = s4u::Link::SharingPolicy::SPLITDUPLEX;
  s4u::NetZone* network = nullptr;
  if (shape.torus) {
    network = s4u::create_torus_zone("torus", nullptr, {shape.extents.begin(), shape.extents.end()}, nodes,
                                     nic.link, nic.hop_us, duplex);
  } else {
    const s4u::FatTreeParams tree(static_cast<unsigned>(shape.extents.size()), narrow(shape.extents),
                                  narrow(shape.parents), std::vector<unsigned>(shape.extents.size(), 1));
    network = s4u::create_fatTree_zone("fat-tree", nullptr, tree, nodes, nic.link, nic.hop_us, duplex);
  }
  network->seal();
  return hosts;
}

std::vector<s4u::Link*> way(s4u::Host* from, s4u::Host* to) {
  std::vector<s4u::Link*> links;
  double latency = 0;
  from->route_to(to, links, &latency);
  if (links.size() < 2) throw std::runtime_error("scale: a route without the links of its two ends.");
  return {links.begin() + 1, links.end() - 1};
}

std::vector<std::string> settings() {
  return {
      "--log=root.threshold:warning",
      "--cfg=network/model:CM02",        // latencies add up, links are shared by max-min
      "--cfg=network/latency-factor:1",  // the default model corrects both for TCP on Ethernet
      "--cfg=network/bandwidth-factor:1",
      "--cfg=network/weight-S:0",
      "--cfg=network/crosstraffic:0",  // no acknowledgements use bandwidth on the way back
      "--cfg=network/TCP-gamma:1e30",  // no window limits the rate by the latency
      "--cfg=network/optim:Full",      // the lazy default gives each of two messages the whole of a link that
                                       // they share
      "--cfg=contexts/factory:raw",
      "--cfg=contexts/stack-size:64",
      "--cfg=contexts/guard-size:0",
  };
}

}  // namespace scale
