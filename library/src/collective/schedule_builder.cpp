#include "collective/schedule_builder.h"

#include <algorithm>
#include <numeric>

namespace pw::collective {
namespace {

// Parts that a method cuts, and operands in scratch memory, begin at multiples of a line of a GPU's cache, so
// that lines carry them whole and no two blocks of a kernel share one.
constexpr uint64_t kAlign = 128;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

uint64_t sum_of_first(const std::vector<uint64_t>& counts, uint32_t end) {
  return std::accumulate(counts.begin(), counts.begin() + end, uint64_t{0});
}

ByteRange part_of(ByteRange whole, uint64_t parts, uint64_t index) {
  const uint64_t size = aligned((whole.bytes + parts - 1) / parts);
  const uint64_t offset = std::min(whole.bytes, size * index);
  return {whole.offset + offset, std::min(size, whole.bytes - offset)};
}

Subgroup ScheduleBuilder::everyone() const {
  Subgroup subgroup;
  subgroup.members.resize(members());
  std::iota(subgroup.members.begin(), subgroup.members.end(), 0);
  subgroup.place = member_;
  return subgroup;
}

ByteRange ScheduleBuilder::part_of_member(uint32_t member) const {
  return {sum_of_first(request_.counts, member) * unit_, request_.counts[member] * unit_};
}

ByteRange ScheduleBuilder::part_received_from(uint32_t member) const {
  return {sum_of_first(request_.receive_counts, member) * unit_, request_.receive_counts[member] * unit_};
}

void ScheduleBuilder::send(uint32_t round, uint32_t other, BufferRange range, uint32_t part) {
  if (range.bytes > 0) schedule_.sends.push_back({round, other, part, range});
}

void ScheduleBuilder::receive(uint32_t round, uint32_t other, BufferRange range, uint32_t part) {
  if (range.bytes > 0) schedule_.receives.push_back({round, other, part, range});
}

BufferRange ScheduleBuilder::take_scratch(uint64_t bytes) {
  const BufferRange range{Buffer::scratch, schedule_.scratch_bytes, bytes};
  schedule_.scratch_bytes += aligned(bytes);
  return range;
}

void ScheduleBuilder::combine(Combination combination) {
  combination.count = combination.local.bytes / unit_;
  combination.stride = aligned(combination.local.bytes);
  if (combination.count > 0) schedule_.combinations.push_back(combination);
}

}  // namespace pw::collective
