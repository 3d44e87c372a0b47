// Builds the schedule of one member. Each family of methods is a file that uses it. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collective/schedule.h"

namespace pw::collective {

struct ByteRange {
  uint64_t offset = 0, bytes = 0;
};

/// Part `index` of `whole` in `parts` parts of one size, the last of which are shorter or empty. All but the
/// last begin at multiples of 128 bytes from the start of `whole`.
ByteRange part_of(ByteRange whole, uint64_t parts, uint64_t index);

/// The sum of the first `end` counts.
uint64_t sum_of_first(const std::vector<uint64_t>& counts, uint32_t end);

/// The members that take part in some rounds, in the order in which their operands are combined, and the
/// place of this member among them.
struct Subgroup {
  std::vector<uint32_t> members;
  uint32_t place = 0;

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(members.size()); }
};

/// The range in a buffer that belongs to the member at this place of a subgroup.
using PartOf = std::function<ByteRange(uint32_t place)>;

class ScheduleBuilder {
 public:
  ScheduleBuilder(const CollectiveRequest& request, uint32_t member)
      : request_(request), member_(member), unit_(bytes_of(request.element)) {}

  [[nodiscard]] const CollectiveRequest& request() const { return request_; }
  [[nodiscard]] uint32_t member() const { return member_; }
  [[nodiscard]] uint32_t members() const { return request_.members(); }
  /// All elements, where members have no parts of their own.
  [[nodiscard]] ByteRange all() const { return {0, request_.count * unit_}; }
  /// All members.
  [[nodiscard]] Subgroup everyone() const;
  /// A member's part by its number of elements.
  [[nodiscard]] ByteRange part_of_member(uint32_t member) const;
  /// What this member gets from another one in an all_to_all.
  [[nodiscard]] ByteRange part_received_from(uint32_t member) const;

  // An empty message is left out at both ends.
  void send(uint32_t round, uint32_t other, BufferRange range, uint32_t part = 0);
  void receive(uint32_t round, uint32_t other, BufferRange range, uint32_t part = 0);
  /// Takes room in scratch memory that no other round uses. It begins at a multiple of 128 bytes.
  BufferRange take_scratch(uint64_t bytes);
  /// Combines `others`, in scratch memory, with the operand in `local`, before the messages of the round.
  void combine(Combination combination);

  Schedule take() { return std::move(schedule_); }

 private:
  const CollectiveRequest& request_;
  uint32_t member_;
  uint64_t unit_;
  Schedule schedule_;
};

// Phases of several methods. Each returns the round after its last one.

/// Each member of the subgroup gets the operands of all for its part, and combines them into its part of
/// `to`. They are read from `operands`. The combination comes before the messages of the returned round.
uint32_t reduce_directly(ScheduleBuilder& builder, uint32_t round, const Subgroup& subgroup,
                         const PartOf& part, Buffer operands);
/// Each member of the subgroup sends its part of `to` to all others.
uint32_t gather_directly(ScheduleBuilder& builder, uint32_t round, const Subgroup& subgroup,
                         const PartOf& part);

// The methods, by the kinds that have them.

void all_reduce_one_shot(ScheduleBuilder& builder);
void all_reduce_two_shot(ScheduleBuilder& builder);
void reduce_scatter_one_shot(ScheduleBuilder& builder);
void all_gather_one_shot(ScheduleBuilder& builder, bool in_place);
void broadcast_one_shot(ScheduleBuilder& builder);
void broadcast_two_shot(ScheduleBuilder& builder);
void all_to_all_one_shot(ScheduleBuilder& builder);
void barrier_one_shot(ScheduleBuilder& builder);

void all_reduce_tree(ScheduleBuilder& builder);
void all_gather_tree(ScheduleBuilder& builder, bool in_place);
void broadcast_tree(ScheduleBuilder& builder);
void barrier_tree(ScheduleBuilder& builder);

void all_reduce_ring(ScheduleBuilder& builder);
void reduce_scatter_ring(ScheduleBuilder& builder);
void all_gather_ring(ScheduleBuilder& builder, bool in_place);

void all_reduce_hierarchical(ScheduleBuilder& builder, const std::vector<Level>& levels);

}  // namespace pw::collective
