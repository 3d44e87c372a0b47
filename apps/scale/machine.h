// The simulated machine: a torus or a fat tree of SimGrid, with the numbers of a NIC.
#ifndef SCALE_MACHINE_H
#define SCALE_MACHINE_H

#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "lattice.h"

namespace scale {

/// Simulated times are in microseconds, bandwidths in bytes a microsecond: see machine.cpp.
struct Nic {
  double hop_us = 0.129;      // of a packet through one link and what routes it on
  double message_us = 0.850;  // of a small message between neighbours (one hop), both ends included
  double link = 75e9 / 8e6;   // of a link, in each of its directions
  double host = 0;            // between a node and its NIC, in each direction; 0: no limit
};

struct Shape {
  bool torus = true;
  Extents extents;  // of the torus; of the fat tree: children at each level, from the leaves up
  Extents parents;  // of the fat tree: those of an element at each level
};

/// "torus:8x8x4" or "fat-tree:16x64/1x16": 16 nodes a leaf switch, 64 of these, each with 16 above it.
Shape shape_of(const std::string& text);

/// The hosts, by node.
std::vector<simgrid::s4u::Host*> build(const Shape& shape, const Nic& nic);

/// The links of the network on the way, without those between a node and its NIC.
std::vector<simgrid::s4u::Link*> way(simgrid::s4u::Host* from, simgrid::s4u::Host* to);

/// Settings of SimGrid, as arguments of its engine.
std::vector<std::string> settings();

}  // namespace scale

#endif
