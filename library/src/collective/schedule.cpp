#include "collective/schedule.h"

#include <algorithm>
#include <array>

#include "collective/schedule_builder.h"

namespace pw::collective {
namespace {

// Several hosts with as many members each, and more than one.
bool has_hierarchy(const Hosts& hosts) {
  std::vector<uint32_t> members(hosts.empty() ? 0 : *std::ranges::max_element(hosts) + 1, 0);
  for (const uint32_t host : hosts) ++members[host];
  return members.size() > 1 && members.front() > 1 &&
         std::ranges::all_of(members, [&](uint32_t count) { return count == members.front(); });
}

void all_reduce(ScheduleBuilder& builder, const Hosts& hosts, CollectiveMethod method) {
  switch (method) {
    case CollectiveMethod::one_shot:
      return all_reduce_one_shot(builder);
    case CollectiveMethod::two_shot:
      return all_reduce_two_shot(builder);
    case CollectiveMethod::tree:
      return all_reduce_tree(builder);
    case CollectiveMethod::ring:
      return all_reduce_ring(builder);
    case CollectiveMethod::hierarchical:
      return all_reduce_hierarchical(builder, hosts);
  }
}

}  // namespace

const char* name_of(CollectiveMethod method) {
  static constexpr std::array<const char*, 5> kNames{"one-shot", "two-shot", "tree", "ring", "hierarchical"};
  return kNames[static_cast<size_t>(method)];
}

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

std::vector<CollectiveMethod> methods_of(const CollectiveRequest& request, const Hosts& hosts) {
  using enum CollectiveMethod;
  const bool several = request.members() > 2;
  std::vector<CollectiveMethod> methods{one_shot};
  const auto add = [&](bool has, CollectiveMethod method) {
    if (has) methods.push_back(method);
  };
  switch (request.kind) {
    case PW_ALL_REDUCE:
      add(request.members() > 1, two_shot);
      add(several && request.any_order(), tree);
      add(several && request.any_order(), ring);
      add(request.any_order() && has_hierarchy(hosts), hierarchical);
      break;
    case PW_REDUCE_SCATTER:
      add(several && request.any_order(), ring);
      break;
    case PW_ALL_GATHER:
      add(several, tree);
      add(several, ring);
      break;
    case PW_BROADCAST:
      add(several, two_shot);
      add(several, tree);
      break;
    case PW_BARRIER:
      add(several, tree);
      break;
    case PW_ALL_TO_ALL:
      break;
  }
  return methods;
}

Schedule schedule_of(const CollectiveRequest& request, const Hosts& hosts, CollectiveMethod method,
                     uint32_t member, bool in_place) {
  const bool tree = method == CollectiveMethod::tree, ring = method == CollectiveMethod::ring;
  ScheduleBuilder builder(request, member);
  switch (request.kind) {
    case PW_ALL_REDUCE:
      all_reduce(builder, hosts, method);
      break;
    case PW_REDUCE_SCATTER:
      ring ? reduce_scatter_ring(builder) : reduce_scatter_one_shot(builder);
      break;
    case PW_ALL_GATHER:
      tree   ? all_gather_tree(builder, in_place)
      : ring ? all_gather_ring(builder, in_place)
             : all_gather_one_shot(builder, in_place);
      break;
    case PW_BROADCAST:
      tree                                   ? broadcast_tree(builder)
      : method == CollectiveMethod::two_shot ? broadcast_two_shot(builder)
                                             : broadcast_one_shot(builder);
      break;
    case PW_BARRIER:
      tree ? barrier_tree(builder) : barrier_one_shot(builder);
      break;
    case PW_ALL_TO_ALL:
      all_to_all_one_shot(builder);
      break;
  }
  return builder.take();
}

uint64_t to_bytes(const CollectiveRequest& request, uint32_t member) {
  const uint64_t unit = bytes_of(request.element);
  switch (request.kind) {
    case PW_ALL_REDUCE:
    case PW_BROADCAST:
      return request.count * unit;
    case PW_REDUCE_SCATTER:
      return request.counts[member] * unit;
    case PW_ALL_GATHER:
      return sum_of_first(request.counts, request.members()) * unit;
    case PW_ALL_TO_ALL:
      return sum_of_first(request.receive_counts, request.members()) * unit;
    case PW_BARRIER:
      break;
  }
  return 0;
}

uint64_t from_bytes(const CollectiveRequest& request, uint32_t member) {
  const uint64_t unit = bytes_of(request.element);
  switch (request.kind) {
    case PW_ALL_REDUCE:
      return request.count * unit;
    case PW_REDUCE_SCATTER:
    case PW_ALL_TO_ALL:
      return sum_of_first(request.counts, request.members()) * unit;
    case PW_ALL_GATHER:
      return request.counts[member] * unit;
    case PW_BROADCAST:
    case PW_BARRIER:
      break;
  }
  return 0;
}

uint64_t part_offset(const CollectiveRequest& request, uint32_t member) {
  return sum_of_first(request.counts, member) * bytes_of(request.element);
}

}  // namespace pw::collective
