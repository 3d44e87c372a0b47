#include "collective/placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace pw::collective {
namespace {

std::vector<uint32_t> entries_of_member(const std::vector<std::vector<uint32_t>>& lists, size_t member) {
  std::vector<uint32_t> entries;
  for (const auto& list : lists) entries.push_back(list[member]);
  return entries;
}

// Whether two members have the same coordinates exactly if they are on one host.
bool coordinates_tell_hosts(const Hosts& hosts, const std::vector<std::vector<uint32_t>>& coordinates) {
  std::map<std::vector<uint32_t>, uint32_t> host_at;
  for (size_t member = 0; member < hosts.size(); ++member)
    if (host_at.try_emplace(entries_of_member(coordinates, member), hosts[member]).first->second !=
        hosts[member])
      return false;
  return host_at.size() == std::set<uint32_t>(hosts.begin(), hosts.end()).size();
}

Level places_on_hosts(const Hosts& hosts) {
  std::map<uint32_t, uint32_t> members;  // of each host so far
  Level places;
  for (const uint32_t host : hosts) places.push_back(members[host]++);
  return places;
}

// Numbers the places from 0 without gaps, in their order. Returns how many there are.
size_t renumber(Level& level) {
  Level places = level;
  std::ranges::sort(places);
  places.erase(std::ranges::unique(places).begin(), places.end());
  for (uint32_t& place : level)
    place = static_cast<uint32_t>(std::ranges::lower_bound(places, place) - places.begin());
  return places.size();
}

bool has_a_member_in_each_place(const std::vector<Level>& levels, size_t places, size_t members) {
  if (places != members) return false;
  std::set<std::vector<uint32_t>> taken;
  for (size_t member = 0; member < members; ++member) taken.insert(entries_of_member(levels, member));
  return taken.size() == members;
}

// Those of the levels that have several places; nothing unless the members fill a grid of several levels.
std::vector<Level> grid_of(std::vector<Level> all, size_t members) {
  std::vector<Level> levels;
  size_t places = 1;
  for (Level& level : all) {
    const size_t in_level = renumber(level);
    if (in_level < 2) continue;
    places *= in_level;
    levels.push_back(std::move(level));
  }
  if (levels.size() < 2 || !has_a_member_in_each_place(levels, places, members)) return {};
  return levels;
}

std::vector<Level> levels_of(const Hosts& hosts, const std::vector<std::vector<uint32_t>>& coordinates) {
  const Level on_hosts = places_on_hosts(hosts);
  if (!coordinates.empty() && coordinates_tell_hosts(hosts, coordinates)) {
    std::vector<Level> all{on_hosts};
    all.insert(all.end(), coordinates.begin(), coordinates.end());
    if (std::vector<Level> levels = grid_of(std::move(all), hosts.size()); !levels.empty()) return levels;
  }
  return grid_of({on_hosts, hosts}, hosts.size());
}

}  // namespace

Hosts hosts_of(const std::vector<uint64_t>& host_ids) {
  Hosts hosts;
  std::vector<uint64_t> known;
  for (const uint64_t id : host_ids) {
    const auto place = std::ranges::find(known, id);
    hosts.push_back(static_cast<uint32_t>(place - known.begin()));
    if (place == known.end()) known.push_back(id);
  }
  return hosts;
}

Placement::Placement(Hosts hosts_of_members, const std::vector<std::vector<uint32_t>>& coordinates)
    : hosts(std::move(hosts_of_members)), levels(levels_of(hosts, coordinates)) {}

}  // namespace pw::collective
