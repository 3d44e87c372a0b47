#include "collective/schedule.h"

#include <algorithm>
#include <numeric>

namespace pw::collective {
namespace {

// Parts that a method cuts, and operands in scratch memory, begin at multiples of a line of a GPU's cache, so
// that lines carry them whole and no two blocks of a kernel share one.
constexpr uint64_t kAlign = 128;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

struct ByteRange {
  uint64_t offset, bytes;
};

// Part `index` of `bytes` bytes in `parts` parts of one size, the last of which are shorter or empty.
ByteRange part_of(uint64_t bytes, uint64_t parts, uint64_t index) {
  const uint64_t size = aligned((bytes + parts - 1) / parts);
  const uint64_t offset = std::min(bytes, size * index);
  return {offset, std::min(size, bytes - offset)};
}

uint64_t sum(const std::vector<uint64_t>& counts, uint32_t end) {
  return std::accumulate(counts.begin(), counts.begin() + end, uint64_t{0});
}

class Scheduler {
 public:
  Scheduler(const CollectiveRequest& request, uint32_t member)
      : request_(request), member_(member), members_(request.members()), unit_(bytes_of(request.element)) {}

  Schedule take() { return std::move(schedule_); }

  void all_reduce(CollectiveMethod method) {
    const uint64_t bytes = request_.count * unit_;
    if (method == CollectiveMethod::one_shot) {
      exchange_operands([&](uint32_t) { return ByteRange{0, bytes}; });
      return combine(0, {0, bytes});
    }
    const auto part = [&](uint32_t of) { return part_of(bytes, members_, of); };
    exchange_operands(part);
    combine(part(member_).offset, part(member_));
    share_parts(part);
  }

  void reduce_scatter() {
    const auto part = [&](uint32_t of) { return part_of_member(of); };
    exchange_operands(part);
    combine(0, part(member_));
  }

  void all_gather(bool in_place) {
    const auto part = [&](uint32_t of) { return part_of_member(of); };
    for (uint32_t other = 0; other < members_; ++other) {
      if (other == member_ && in_place) continue;
      send(0, other, Buffer::from, {0, part(member_).bytes});
      receive(0, other, Buffer::to, part(other));
    }
  }

  void broadcast(CollectiveMethod method) {
    const uint64_t bytes = request_.count * unit_;
    const uint32_t root = request_.member(request_.root);
    if (method == CollectiveMethod::one_shot) {
      if (member_ != root) return receive(0, root, Buffer::to, {0, bytes});
      for_others([&](uint32_t other) { send(0, other, Buffer::to, {0, bytes}); });
      return;
    }
    // The root has no part: it needs nothing from the others.
    const auto part = [&](uint32_t of) {
      return of == root ? ByteRange{0, 0} : part_of(bytes, members_ - 1, of < root ? of : of - 1);
    };
    if (member_ == root) {
      for_others([&](uint32_t other) { send(0, other, Buffer::to, part(other)); });
      return;
    }
    receive(0, root, Buffer::to, part(member_));
    for_others([&](uint32_t other) {
      if (other == root) return;
      send(1, other, Buffer::to, part(member_));
      receive(1, other, Buffer::to, part(other));
    });
  }

  void all_to_all() {
    for (uint32_t other = 0; other < members_; ++other) {
      send(0, other, Buffer::from, part_of_member(other));
      receive(0, other, Buffer::to,
              {sum(request_.receive_counts, other) * unit_, request_.receive_counts[other] * unit_});
    }
  }

  // A word of each member to each other one: once all have arrived, all members have started.
  void barrier() {
    constexpr uint64_t kWord = 8;
    for_others([&](uint32_t other) {
      send(0, other, Buffer::scratch, {0, kWord});
      receive(0, other, Buffer::scratch, {(place_of(other) + 1) * kAlign, kWord});
    });
    if (members_ > 1) schedule_.scratch_bytes = members_ * kAlign;
  }

 private:
  template <typename Body>
  void for_others(Body&& body) const {
    for (uint32_t other = 0; other < members_; ++other)
      if (other != member_) body(other);
  }
  // The place of another member among the other members.
  [[nodiscard]] uint64_t place_of(uint32_t other) const { return other < member_ ? other : other - 1; }
  [[nodiscard]] ByteRange part_of_member(uint32_t of) const {
    return {sum(request_.counts, of) * unit_, request_.counts[of] * unit_};
  }

  void send(uint32_t round, uint32_t other, Buffer buffer, ByteRange part) {
    if (part.bytes > 0) schedule_.sends.push_back({round, other, buffer, part.offset, part.bytes});
  }
  void receive(uint32_t round, uint32_t other, Buffer buffer, ByteRange part) {
    if (part.bytes > 0) schedule_.receives.push_back({round, other, buffer, part.offset, part.bytes});
  }

  // Sends each other member this one's operand for that member's part, and receives those for its own.
  template <typename PartOf>
  void exchange_operands(const PartOf& part) {
    const uint64_t bytes = part(member_).bytes, stride = aligned(bytes);
    for_others([&](uint32_t other) {
      send(0, other, Buffer::from, part(other));
      receive(0, other, Buffer::scratch, {place_of(other) * stride, bytes});
    });
    schedule_.scratch_bytes = stride * (members_ - 1);
  }

  // Combines the operands for the part, which begins at `to` in the target.
  void combine(uint64_t to, ByteRange part) {
    if (part.bytes > 0)
      schedule_.combinations.push_back({1, to, part.offset, aligned(part.bytes), part.bytes / unit_});
  }

  // Sends this member's part of the target to all others, and receives theirs.
  template <typename PartOf>
  void share_parts(const PartOf& part) {
    for_others([&](uint32_t other) {
      send(1, other, Buffer::to, part(member_));
      receive(1, other, Buffer::to, part(other));
    });
  }

  const CollectiveRequest& request_;
  uint32_t member_, members_;
  uint64_t unit_;
  Schedule schedule_;
};

}  // namespace

const char* name_of(CollectiveMethod method) {
  return method == CollectiveMethod::one_shot ? "one-shot" : "two-shot";
}

std::vector<CollectiveMethod> methods_of(pw_collective_kind kind, uint32_t members) {
  const bool two = (kind == PW_ALL_REDUCE && members > 1) || (kind == PW_BROADCAST && members > 2);
  return two ? std::vector{CollectiveMethod::one_shot, CollectiveMethod::two_shot}
             : std::vector{CollectiveMethod::one_shot};
}

Schedule schedule_of(const CollectiveRequest& request, CollectiveMethod method, uint32_t member,
                     bool in_place) {
  Scheduler scheduler(request, member);
  switch (request.kind) {
    case PW_ALL_REDUCE:
      scheduler.all_reduce(method);
      break;
    case PW_REDUCE_SCATTER:
      scheduler.reduce_scatter();
      break;
    case PW_ALL_GATHER:
      scheduler.all_gather(in_place);
      break;
    case PW_BROADCAST:
      scheduler.broadcast(method);
      break;
    case PW_ALL_TO_ALL:
      scheduler.all_to_all();
      break;
    case PW_BARRIER:
      scheduler.barrier();
      break;
  }
  return scheduler.take();
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
      return sum(request.counts, request.members()) * unit;
    case PW_ALL_TO_ALL:
      return sum(request.receive_counts, request.members()) * unit;
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
      return sum(request.counts, request.members()) * unit;
    case PW_ALL_GATHER:
      return request.counts[member] * unit;
    case PW_BROADCAST:
    case PW_BARRIER:
      break;
  }
  return 0;
}

uint64_t part_offset(const CollectiveRequest& request, uint32_t member) {
  return sum(request.counts, member) * bytes_of(request.element);
}

}  // namespace pw::collective
