// The methods in which members send directly to all others that need something: one-shot and two-shot.
#include "collective/schedule_builder.h"

namespace pw::collective {
namespace {

template <typename Body>
void for_others(const ScheduleBuilder& builder, Body&& body) {
  for (uint32_t other = 0; other < builder.members(); ++other)
    if (other != builder.member()) body(other);
}

template <typename Body>
void for_other_places(const Subgroup& subgroup, Body&& body) {
  for (uint32_t place = 0; place < subgroup.size(); ++place)
    if (place != subgroup.place) body(place, subgroup.members[place]);
}

BufferRange in(Buffer buffer, ByteRange range) { return {buffer, range.offset, range.bytes}; }

// Each member sends every other its operand for that member's part. Returns where the first of those for its
// own part arrives.
uint64_t exchange_operands(ScheduleBuilder& builder, uint32_t round, const Subgroup& subgroup,
                           const PartOf& part, Buffer operands) {
  const uint64_t bytes = part(subgroup.place).bytes;
  uint64_t first = 0;
  for_other_places(subgroup, [&](uint32_t place, uint32_t other) {
    builder.send(round, other, in(operands, part(place)));
    const BufferRange arriving = builder.take_scratch(bytes);
    if (place == (subgroup.place == 0 ? 1U : 0U)) first = arriving.offset;
    builder.receive(round, other, arriving);
  });
  return first;
}

}  // namespace

uint32_t reduce_directly(ScheduleBuilder& builder, uint32_t round, const Subgroup& subgroup,
                         const PartOf& part, Buffer operands) {
  const ByteRange own = part(subgroup.place);
  Combination combination{.round = round + 1, .operands = subgroup.size(), .place = subgroup.place};
  combination.others = exchange_operands(builder, round, subgroup, part, operands);
  combination.to = in(Buffer::to, own);
  combination.local = in(operands, own);
  builder.combine(combination);
  return round + 1;
}

uint32_t gather_directly(ScheduleBuilder& builder, uint32_t round, const Subgroup& subgroup,
                         const PartOf& part) {
  for_other_places(subgroup, [&](uint32_t place, uint32_t other) {
    builder.send(round, other, in(Buffer::to, part(subgroup.place)));
    builder.receive(round, other, in(Buffer::to, part(place)));
  });
  return round + 1;
}

void all_reduce_one_shot(ScheduleBuilder& builder) {
  reduce_directly(builder, 0, builder.everyone(), [&](uint32_t) { return builder.all(); }, Buffer::from);
}

void all_reduce_two_shot(ScheduleBuilder& builder) {
  const PartOf part = [&](uint32_t place) { return part_of(builder.all(), builder.members(), place); };
  const uint32_t round = reduce_directly(builder, 0, builder.everyone(), part, Buffer::from);
  gather_directly(builder, round, builder.everyone(), part);
}

void reduce_scatter_one_shot(ScheduleBuilder& builder) {
  const Subgroup subgroup = builder.everyone();
  const PartOf part = [&](uint32_t place) { return builder.part_of_member(place); };
  const ByteRange own = part(subgroup.place);
  Combination combination{.operands = subgroup.size(), .place = subgroup.place};
  combination.others = exchange_operands(builder, 0, subgroup, part, Buffer::from);
  combination.to = {Buffer::to, 0, own.bytes};
  combination.local = in(Buffer::from, own);
  builder.combine(combination);
}

void all_gather_one_shot(ScheduleBuilder& builder, bool in_place) {
  for (uint32_t other = 0; other < builder.members(); ++other) {
    if (other == builder.member() && in_place) continue;
    builder.send(0, other, {Buffer::from, 0, builder.part_of_member(builder.member()).bytes});
    builder.receive(0, other, in(Buffer::to, builder.part_of_member(other)));
  }
}

void broadcast_one_shot(ScheduleBuilder& builder) {
  const uint32_t root = builder.request().member(builder.request().root);
  const BufferRange all = in(Buffer::to, builder.all());
  if (builder.member() != root) return builder.receive(0, root, all);
  for_others(builder, [&](uint32_t other) { builder.send(0, other, all); });
}

void broadcast_two_shot(ScheduleBuilder& builder) {
  const uint32_t root = builder.request().member(builder.request().root), own = builder.member();
  // The root has no part: it needs nothing from the others.
  const auto part = [&](uint32_t of) {
    const ByteRange range =
        of == root ? ByteRange{} : part_of(builder.all(), builder.members() - 1, of < root ? of : of - 1);
    return in(Buffer::to, range);
  };
  if (own == root) return for_others(builder, [&](uint32_t other) { builder.send(0, other, part(other)); });
  builder.receive(0, root, part(own));
  for_others(builder, [&](uint32_t other) {
    if (other == root) return;
    builder.send(1, other, part(own));
    builder.receive(1, other, part(other));
  });
}

void all_to_all_one_shot(ScheduleBuilder& builder) {
  for (uint32_t other = 0; other < builder.members(); ++other) {
    builder.send(0, other, in(Buffer::from, builder.part_of_member(other)));
    builder.receive(0, other, in(Buffer::to, builder.part_received_from(other)));
  }
}

// A word of each member to each other one: once all have arrived, all members have started.
void barrier_one_shot(ScheduleBuilder& builder) {
  constexpr uint64_t kWord = 8;
  if (builder.members() == 1) return;
  const BufferRange word = builder.take_scratch(kWord);
  for_others(builder, [&](uint32_t other) {
    builder.send(0, other, word);
    builder.receive(0, other, builder.take_scratch(kWord));
  });
}

}  // namespace pw::collective
