// What one member of a group does in a collective, by a method: its messages, in rounds, and what it
// combines. Pure: tests carry out the schedules of all members in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/placement.h"
#include "collective/request.h"

namespace pw::collective {

/// The ways to do a collective. one_shot and two_shot combine elements in the order of the group; the others
/// combine them in an order of their own, which is the same in every start.
enum class CollectiveMethod : uint8_t {
  one_shot,      ///< each member sends everything that another needs directly to it, in one round
  two_shot,      ///< each member first gets one part of the data and then sends that part to all others
  tree,          ///< in each round the number of members whose data a member has doubles
  ring,          ///< each member sends only to the next one; parts travel around the ring
  hierarchical,  ///< members share the work on their host, then along each dimension of the network
};
const char* name_of(CollectiveMethod method);

/// Returns the methods that the collective has, the first of which is preferred.
std::vector<CollectiveMethod> methods_of(const CollectiveRequest& request, const Placement& placement);

/// Memory of a member.
enum class Buffer : uint8_t { to, from, scratch };

struct BufferRange {
  Buffer buffer = Buffer::from;
  uint64_t offset = 0, bytes = 0;
};

/// A message, at this member's end. Both ends are in the same round; round 0 is sent by a start.
struct MemberMessage {
  uint32_t round = 0;
  uint32_t member = 0;  ///< the other end; this member itself for a copy
  uint32_t part = 0;    ///< 0, or 1 for the second message of a round between the same members
  BufferRange range;
};

/// Combines the operands of some members: this member's own one in `local`, and others in scratch memory. It
/// comes before the messages of its round.
struct Combination {
  uint32_t round = 1;
  uint32_t operands = 2;
  uint32_t place = 0;  ///< of the local operand, in the order in which they are combined
  uint64_t count = 0;  ///< elements
  BufferRange to{}, local{};
  uint64_t others = 0;  ///< offset of the first operand in scratch memory
  uint64_t stride = 0;  ///< of the operands there
};

struct Schedule {
  std::vector<MemberMessage> sends, receives;
  std::vector<Combination> combinations;  ///< at most one in a round
  uint64_t scratch_bytes = 0;
};

/// `in_place`: a reduce_scatter or all_gather whose own part in the larger buffer is the smaller buffer.
Schedule schedule_of(const CollectiveRequest& request, const Placement& placement, CollectiveMethod method,
                     uint32_t member, bool in_place);

/// The bytes of `to` and `from` that a member needs. A broadcast uses `to` alone.
uint64_t to_bytes(const CollectiveRequest& request, uint32_t member);
uint64_t from_bytes(const CollectiveRequest& request, uint32_t member);
/// The offset in bytes of a member's part among the parts of all.
uint64_t part_offset(const CollectiveRequest& request, uint32_t member);

}  // namespace pw::collective
