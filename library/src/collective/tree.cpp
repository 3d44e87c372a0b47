// The methods whose number of rounds grows with the logarithm of the number of members.
#include <algorithm>
#include <bit>

#include "collective/schedule_builder.h"

namespace pw::collective {

// Members whose places differ in one bit exchange what they have, one bit after another, so that after each
// exchange both have the operands of twice as many neighbours, in the order of the group. If the number of
// members is not a power of two, so many pairs at the front act as one member as are too many: the first of
// the pair does, and tells the second one the result.
void all_reduce_tree(ScheduleBuilder& builder) {
  const uint32_t power = std::bit_floor(builder.members()), pairs = builder.members() - power;
  const uint32_t member = builder.member(), first_round = pairs > 0 ? 1 : 0;
  const auto last_round = first_round + static_cast<uint32_t>(std::countr_zero(power));
  const bool paired = member < 2 * pairs;
  const BufferRange result{Buffer::to, 0, builder.all().bytes};
  BufferRange own{Buffer::from, 0, builder.all().bytes};
  if (paired && member % 2 == 1) {
    builder.send(0, member - 1, own);
    return builder.receive(last_round, member - 1, result);
  }
  const auto take = [&](uint32_t round, uint32_t other) {
    const BufferRange arriving = builder.take_scratch(own.bytes);
    builder.receive(round, other, arriving);
    builder.combine({.round = round + 1,
                     .place = member < other ? 0U : 1U,
                     .to = result,
                     .local = own,
                     .others = arriving.offset});
    own = result;
  };
  if (paired) take(0, member + 1);
  const uint32_t number = paired ? member / 2 : member - pairs;
  uint32_t round = first_round;
  for (uint32_t bit = 1; bit < power; bit *= 2, ++round) {
    const uint32_t partner = number ^ bit, other = partner < pairs ? 2 * partner : partner + pairs;
    builder.send(round, other, own);
    take(round, other);
  }
  if (paired) builder.send(last_round, member + 1, result);
}

// Each member has its own part and those of the members behind it, without a gap, around the end of the
// group. In each round it gets as many more from the member behind those, and gives as many.
void all_gather_tree(ScheduleBuilder& builder, bool in_place) {
  const uint32_t members = builder.members(), member = builder.member();
  const BufferRange own{Buffer::from, 0, builder.part_of_member(member).bytes};
  const auto target = [&](uint32_t begin, uint32_t end) {  // of these members' parts
    const uint64_t offset = builder.part_of_member(begin).offset;
    const ByteRange last = builder.part_of_member(end - 1);
    return BufferRange{Buffer::to, offset, last.offset + last.bytes - offset};
  };
  if (!in_place) {
    builder.send(0, member, own);
    builder.receive(0, member, target(member, member + 1));
  }
  uint32_t round = 0;
  for (uint32_t parts = 1; parts < members; parts *= 2, ++round) {
    const uint32_t more = std::min(parts, members - parts);
    const uint32_t before = (member + members - parts) % members, behind = (member + parts) % members;
    const auto transfer = [&](uint32_t first, auto&& move) {  // of `more` parts from this one on
      const uint32_t until_end = std::min(more, members - first);
      move(target(first, first + until_end), 0U);
      if (until_end < more) move(target(0, more - until_end), 1U);
    };
    if (round == 0)
      builder.send(0, before, own);  // its place in `to` may not have been written yet
    else
      transfer(member, [&](BufferRange range, uint32_t part) { builder.send(round, before, range, part); });
    transfer(behind, [&](BufferRange range, uint32_t part) { builder.receive(round, behind, range, part); });
  }
}

// In each round every member that has the data sends it to one that has not.
void broadcast_tree(ScheduleBuilder& builder) {
  const uint32_t members = builder.members(), root = builder.request().member(builder.request().root);
  const uint32_t place = (builder.member() + members - root) % members;
  const BufferRange all{Buffer::to, 0, builder.all().bytes};
  uint32_t round = 0;
  for (uint32_t having = 1; having < members; having *= 2, ++round) {
    if (place < having && place + having < members)
      builder.send(round, (builder.member() + having) % members, all);
    if (place >= having && place < 2 * having)
      builder.receive(round, (builder.member() + members - having) % members, all);
  }
}

// In each round a member tells one other that it and all that it has heard of have started.
void barrier_tree(ScheduleBuilder& builder) {
  constexpr uint64_t kWord = 8;
  const uint32_t members = builder.members();
  const BufferRange word = builder.take_scratch(kWord);
  uint32_t round = 0;
  for (uint32_t distance = 1; distance < members; distance *= 2, ++round) {
    builder.send(round, (builder.member() + distance) % members, word);
    builder.receive(round, (builder.member() + members - distance) % members, builder.take_scratch(kWord));
  }
}

}  // namespace pw::collective
