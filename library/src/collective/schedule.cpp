#include "collective/schedule.h"

#include <algorithm>
#include <array>

#include "collective/schedule_builder.h"

namespace pw::collective {
namespace {

void all_reduce(ScheduleBuilder& builder, const Placement& placement, CollectiveMethod method) {
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
      return all_reduce_hierarchical(builder, placement.levels);
  }
}

}  // namespace

const char* name_of(CollectiveMethod method) {
  static constexpr std::array<const char*, 5> kNames{"one-shot", "two-shot", "tree", "ring", "hierarchical"};
  return kNames[static_cast<size_t>(method)];
}

std::vector<CollectiveMethod> methods_of(const CollectiveRequest& request, const Placement& placement) {
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
      add(request.any_order() && !placement.levels.empty(), hierarchical);
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

Schedule schedule_of(const CollectiveRequest& request, const Placement& placement, CollectiveMethod method,
                     uint32_t member, bool in_place) {
  const bool tree = method == CollectiveMethod::tree, ring = method == CollectiveMethod::ring;
  ScheduleBuilder builder(request, member);
  switch (request.kind) {
    case PW_ALL_REDUCE:
      all_reduce(builder, placement, method);
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
