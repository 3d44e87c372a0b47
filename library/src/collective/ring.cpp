// The methods in which each member sends only to the next one.
#include "collective/schedule_builder.h"

namespace pw::collective {
namespace {

class Ring {
 public:
  explicit Ring(ScheduleBuilder& builder) : builder_(builder), members_(builder.members()) {}

  // The sum of a part begins at the member after its owner, and ends at its owner, who stores it in `to`.
  // Returns the round that begins with the owner's combination.
  uint32_t reduce(const PartOf& part, BufferRange to) {
    BufferRange sum = in(Buffer::from, part(behind(1)));
    for (uint32_t step = 0; step + 1 < members_; ++step) {
      const ByteRange next = part(behind(step + 2));
      builder_.send(step, ahead(), sum);
      const BufferRange arriving = builder_.take_scratch(next.bytes);
      builder_.receive(step, behind(1), arriving);
      sum = step + 2 < members_ ? arriving : to;  // the sum may take the place of an operand
      builder_.combine({.round = step + 1,
                        .place = 1,
                        .to = sum,
                        .local = in(Buffer::from, next),
                        .others = arriving.offset});
    }
    return members_ - 1;
  }

  // Each part goes around, from its owner on. `own` is where this member's part is.
  void gather(uint32_t round, const PartOf& part, BufferRange own) {
    for (uint32_t step = 0; step + 1 < members_; ++step) {
      builder_.send(round + step, ahead(), step == 0 ? own : in(Buffer::to, part(behind(step))));
      builder_.receive(round + step, behind(1), in(Buffer::to, part(behind(step + 1))));
    }
  }

 private:
  static BufferRange in(Buffer buffer, ByteRange range) { return {buffer, range.offset, range.bytes}; }
  [[nodiscard]] uint32_t ahead() const { return (builder_.member() + 1) % members_; }
  [[nodiscard]] uint32_t behind(uint32_t steps) const {
    return (builder_.member() + 2 * members_ - steps) % members_;
  }

  ScheduleBuilder& builder_;
  uint32_t members_;
};

}  // namespace

void all_reduce_ring(ScheduleBuilder& builder) {
  const PartOf part = [&](uint32_t member) { return part_of(builder.all(), builder.members(), member); };
  const ByteRange range = part(builder.member());
  const BufferRange own{Buffer::to, range.offset, range.bytes};
  Ring ring(builder);
  ring.gather(ring.reduce(part, own), part, own);
}

void reduce_scatter_ring(ScheduleBuilder& builder) {
  const PartOf part = [&](uint32_t member) { return builder.part_of_member(member); };
  Ring(builder).reduce(part, {Buffer::to, 0, part(builder.member()).bytes});
}

void all_gather_ring(ScheduleBuilder& builder, bool in_place) {
  const PartOf part = [&](uint32_t member) { return builder.part_of_member(member); };
  const ByteRange range = part(builder.member());
  const BufferRange own{Buffer::from, 0, range.bytes};
  if (!in_place) {
    builder.send(0, builder.member(), own);
    builder.receive(0, builder.member(), {Buffer::to, range.offset, range.bytes});
  }
  Ring(builder).gather(0, part, own);
}

}  // namespace pw::collective
