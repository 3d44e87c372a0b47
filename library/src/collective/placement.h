// Where the members of a group are, and the hierarchy that this gives. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace pw::collective {

/// On which host each member of a group is: the same number for members of one host, counted from 0.
using Hosts = std::vector<uint32_t>;

/// Numbers hosts in the order of their first members. `host_ids` has one for each member.
Hosts hosts_of(const std::vector<uint64_t>& host_ids);

/// The place of each member in one level of a hierarchy, counted from 0.
using Level = std::vector<uint32_t>;

struct Placement {
  /// `coordinates` has, for each dimension of the network between hosts, the coordinate of each member;
  /// nothing if the network has no dimensions, or if they are not known.
  Placement(Hosts hosts_of_members, const std::vector<std::vector<uint32_t>>& coordinates = {});
  Placement(std::initializer_list<uint32_t> hosts_of_members) : Placement(Hosts(hosts_of_members)) {}

  Hosts hosts;
  /// The levels of a hierarchy: the members of a host, and then those along each dimension of the network, or
  /// one of each host if the hosts fill no grid of coordinates. Levels with a single place are left out.
  /// Empty unless there are several levels, and one member for each combination of their places.
  std::vector<Level> levels;
};

}  // namespace pw::collective
