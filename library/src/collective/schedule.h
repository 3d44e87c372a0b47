// What one member of a group does in a collective, by a method: its messages, in rounds, and what it
// combines. Pure: tests carry out the schedules of all members in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/request.h"

namespace pw::collective {

/// The ways to do a collective. All give the same bits, because elements are combined in the order of the
/// group.
enum class CollectiveMethod : uint8_t {
  one_shot,  ///< each member sends everything that another needs directly to it, in one round
  two_shot,  ///< each member first gets one part of the data and then sends that part to all others
};
const char* name_of(CollectiveMethod method);

/// Returns the methods that the kind has among so many members, the first of which is preferred.
std::vector<CollectiveMethod> methods_of(pw_collective_kind kind, uint32_t members);

/// Memory of a member.
enum class Buffer : uint8_t { to, from, scratch };

/// A message, at this member's end. Both ends are in the same round; round 0 is sent by a start.
struct MemberMessage {
  uint32_t round = 0;
  uint32_t member = 0;  ///< the other end; this member itself for a copy
  Buffer buffer = Buffer::from;
  uint64_t offset = 0, bytes = 0;
};

/// Combines an operand in `from` with those of the other members, which are in scratch memory.
struct Combination {
  uint32_t round = 1;         ///< it comes before the messages of that round
  uint64_t to = 0, from = 0;  ///< offsets in the buffers
  uint64_t stride = 0;        ///< of the operands in scratch memory
  uint64_t count = 0;         ///< elements
};

struct Schedule {
  std::vector<MemberMessage> sends, receives;
  std::vector<Combination> combinations;
  uint64_t scratch_bytes = 0;
};

/// `in_place`: a reduce_scatter or all_gather whose own part in the larger buffer is the smaller buffer.
Schedule schedule_of(const CollectiveRequest& request, CollectiveMethod method, uint32_t member,
                     bool in_place);

/// The bytes of `to` and `from` that a member needs. A broadcast uses `to` alone.
uint64_t to_bytes(const CollectiveRequest& request, uint32_t member);
uint64_t from_bytes(const CollectiveRequest& request, uint32_t member);
/// The offset in bytes of a member's part among the parts of all.
uint64_t part_offset(const CollectiveRequest& request, uint32_t member);

}  // namespace pw::collective
