// The method for groups of several hosts with as many members each: what crosses between hosts is shared by
// the members of a host, and each of them talks to one member of each other host.
#include "collective/schedule_builder.h"

namespace pw::collective {

void all_reduce_hierarchical(ScheduleBuilder& builder, const Hosts& hosts) {
  const uint32_t own_host = hosts[builder.member()];
  std::vector<uint32_t> seen(builder.members(), 0);  // members of each host so far
  Subgroup local;
  std::vector<uint32_t> number_on_host;
  for (uint32_t member = 0; member < builder.members(); ++member) {
    number_on_host.push_back(seen[hosts[member]]++);
    if (hosts[member] != own_host) continue;
    if (member == builder.member()) local.place = local.size();
    local.members.push_back(member);
  }
  Subgroup across;  // one of each host, in the order of the group
  for (uint32_t member = 0; member < builder.members(); ++member) {
    if (number_on_host[member] != local.place) continue;
    if (member == builder.member()) across.place = across.size();
    across.members.push_back(member);
  }
  const PartOf part = [&](uint32_t place) { return part_of(builder.all(), local.size(), place); };
  const PartOf part_of_part = [&](uint32_t place) {
    return part_of(part(local.place), across.size(), place);
  };
  uint32_t round = reduce_directly(builder, 0, local, part, Buffer::from);
  round = reduce_directly(builder, round, across, part_of_part, Buffer::to);
  round = gather_directly(builder, round, across, part_of_part);
  gather_directly(builder, round, local, part);
}

}  // namespace pw::collective
