// The simulated machine: a torus or a fat tree of SimGrid, with the properties of a NIC.
#ifndef SCALE_MACHINE_H
#define SCALE_MACHINE_H

#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "lattice.h"

namespace scale {

/// Simulated times are in microseconds, bandwidths in bytes per microsecond: see machine.cpp.
struct Nic {
  double hop_us = 0.129;      // of a packet through one link and the router after it
  double message_us = 0.850;  // of a small message between neighbours (one hop), including both ends
  double link = 75e9 / 8e6;   // bandwidth of a link, in each direction
  double host = 0;            // bandwidth between a node and its NIC, in each direction; 0: no limit
};

struct Shape {
  bool torus = true;
  Extents extents;  // of the torus; for a fat tree: children at each level, from the leaves up
  Extents parents;  // for a fat tree: parents of an element at each level
};

/// Parses "torus:8x8x4" or "fat-tree:16x64/1x16": 16 nodes per leaf switch, 64 leaf switches, each with 16
/// switches above it.
Shape shape_of(const std::string& text);

/// Builds the machine; returns the hosts, by node.
std::vector<simgrid::s4u::Host*> build(const Shape& shape, const Nic& nic);

/// Returns the links of the network on the route, without those between a node and its NIC.
std::vector<simgrid::s4u::Link*> way(simgrid::s4u::Host* from, simgrid::s4u::Host* to);

/// Returns the settings of SimGrid, as arguments of its engine.
std::vector<std::string> settings();

}  // namespace scale

#endif
