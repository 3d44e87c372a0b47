#include "xacc/runtime/reflect/plans.h"

#include <algorithm>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/mapping/halo_boxes.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

std::string names_of(const ReflectRequest& request) {
  std::string names;
  for (const ReflectPart& part : request.parts) names += text(names.empty() ? "" : ", ", part.array->name);
  return names;
}

void check_request(const ReflectRequest& request, const Set& set) {
  for (const ReflectPart& part : request.parts) {
    const pwx_array& a = *part.array;
    check_widths(a, part.widths);
    for (int node = 0; node < a.on->nodes->total; ++node)
      if (std::ranges::find(set.ranks, a.on->nodes->ranks[node]) == set.ranks.end())
        refuse("reflect of ", a.name, " in a task that not all nodes of ", a.on->nodes->name,
               " execute; do it outside of the task");
  }
}

/// Adds the sends and receives of one array, and returns the number of operations added. Both ends number the
/// boxes of a receiver alike.
int add_array(peerway::PlanBuilder& builder, const ReflectRequest& request, int number) {
  const ReflectPart& part = request.parts[static_cast<size_t>(number)];
  const int count = static_cast<int>(request.parts.size());
  const pwx_array& a = *part.array;
  const pwx_nodes& nodes = *a.on->nodes;
  const peerway::Region& memory = request.acc() ? *present(a, "reflect").region : a.state->memory;
  int added = 0;
  for (int receiver = 0; receiver < nodes.total; ++receiver) {
    const int to = nodes.ranks[receiver];
    int tag = number;
    for (const Box& box : needs_of(a, receiver, part.widths, !request.orthogonal())) {
      const int from = nodes.ranks[box.owner];
      const bool mine = to == program().rank() || from == program().rank();
      for (const BlockPair& block : mine ? blocks_of(a, box, receiver) : std::vector<BlockPair>{}) {
        if (from == program().rank()) builder.send(to, tag, memory.block(block.from));
        if (to == program().rank()) builder.receive(from, tag, memory.block(block.to));
        tag += count;
        ++added;
      }
      // Skip the tags of this box: both ends of a box must use the same ones.
      if (!mine) tag += count * static_cast<int>(blocks_of(a, box, receiver).size());
    }
  }
  return added;
}

bool same_width(const pwx_width& a, const pwx_width& b) {
  return a.lo == b.lo && a.hi == b.hi && (a.periodic != 0) == (b.periodic != 0);
}

}  // namespace

bool ReflectRequest::acc() const { return (flags & PWX_REFLECT_ACC) != 0 && gpu() != nullptr; }

bool same_widths(const pwx_array& a, const Widths& a_widths, const Widths& other) {
  return std::equal(a_widths.begin(), a_widths.begin() + a.ndims, other.begin(), same_width);
}

std::shared_ptr<Reflect> make_reflect(const ReflectRequest& request, const Set& set) {
  check_request(request, set);
  auto entry = std::make_shared<Reflect>();
  for (const ReflectPart& part : request.parts) {
    entry->arrays.push_back(part.array->state->id);
    entry->states.push_back(part.array->state);
    entry->lives.push_back(part.array->state->life);
    entry->widths.push_back(part.widths);
    if (!request.acc()) continue;
    const Present& copy = present(*part.array, "reflect");
    entry->copies.push_back(copy.id);
    entry->memory.push_back({copy.device, copy.bytes});
    entry->outside = entry->outside || copy.outside;
  }
  entry->orthogonal = request.orthogonal();
  entry->set = &set;
  entry->names = names_of(request);
  peerway::PlanBuilder builder = program().context.plan(request.acc() ? the_gpu().device() : peerway::host);
  int added = 0;
  for (size_t i = 0; i < request.parts.size(); ++i)
    if (request.parts[i].array->on->nodes->member != 0)
      added += add_array(builder, request, static_cast<int>(i));
  entry->number = ++set.plans;
  if (added == 0 && set.size() == 1) return entry;
  peerway::Plan plan = builder.prepare_among(set.ranks);
  if (added > 0) entry->plan.emplace(std::move(plan));
  return entry;
}

bool is_for(const Reflect& entry, const ReflectRequest& request, const Set& set) {
  if (entry.stale || entry.set != &set || entry.orthogonal != request.orthogonal() ||
      entry.arrays.size() != request.parts.size() || entry.copies.empty() == request.acc())
    return false;
  for (size_t i = 0; i < entry.arrays.size(); ++i) {
    const pwx_array& a = *request.parts[i].array;
    if (a.state->id != entry.arrays[i] || !same_widths(a, entry.widths[i], request.parts[i].widths))
      return false;
  }
  for (size_t i = 0; i < entry.copies.size(); ++i)
    if (const Present* copy = find_present(*request.parts[i].array);
        copy == nullptr || copy->id != entry.copies[i])
      return false;
  return true;
}

}  // namespace pwx
