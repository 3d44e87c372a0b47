// The method for groups that fill a grid: several hosts with as many members each, or hosts at the nodes of a
// torus. What crosses between hosts is shared by the members of a host, and likewise in each dimension of the
// network, so that each member talks only to members that differ from it in one level.
#include <algorithm>
#include <map>

#include "collective/schedule_builder.h"

namespace pw::collective {
namespace {

// The members that differ from this one in their place in `level` alone.
Subgroup subgroup_in(const ScheduleBuilder& builder, const std::vector<Level>& levels, const Level& level) {
  const uint32_t own = builder.member();
  std::map<uint32_t, uint32_t> members;  // by their place
  for (uint32_t member = 0; member < builder.members(); ++member)
    if (std::ranges::all_of(
            levels, [&](const Level& other) { return &other == &level || other[member] == other[own]; }))
      members.emplace(level[member], member);
  Subgroup subgroup;
  for (const auto& [place, member] : members) subgroup.members.push_back(member);
  subgroup.place = level[own];
  return subgroup;
}

}  // namespace

void all_reduce_hierarchical(ScheduleBuilder& builder, const std::vector<Level>& levels) {
  std::vector<Subgroup> subgroups;
  std::vector<PartOf> parts;  // in each level, of this member's part in the level before
  ByteRange own = builder.all();
  for (const Level& level : levels) {
    const Subgroup& subgroup = subgroups.emplace_back(subgroup_in(builder, levels, level));
    parts.emplace_back([own, size = subgroup.size()](uint32_t place) { return part_of(own, size, place); });
    own = parts.back()(subgroup.place);
  }
  uint32_t round = 0;
  for (size_t level = 0; level < levels.size(); ++level)
    round = reduce_directly(builder, round, subgroups[level], parts[level],
                            level == 0 ? Buffer::from : Buffer::to);
  for (size_t level = levels.size(); level-- > 0;)
    round = gather_directly(builder, round, subgroups[level], parts[level]);
}

}  // namespace pw::collective
