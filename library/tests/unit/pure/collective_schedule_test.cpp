// The schedules of all members, carried out in memory: what every member ends with is what the collective is
// defined to give, whatever the method, the numbers of elements and of members.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "collective/schedule.h"
#include "device/host/reduction.h"

namespace pw::collective {
namespace {

using Memory = std::vector<unsigned char>;

/// A member, with the values of its elements: int16, so that parts seldom end at a multiple of 128 bytes.
struct Member {
  Schedule schedule;
  Memory to, from, scratch;

  Memory& in(Buffer buffer) { return buffer == Buffer::to ? to : buffer == Buffer::from ? from : scratch; }
};

int16_t value(uint32_t member, uint64_t index) {
  return static_cast<int16_t>(1000 * (member + 1) + 7 * index % 911);
}

Memory values(uint32_t member, uint64_t count, uint64_t first = 0) {
  Memory memory(count * sizeof(int16_t));
  for (uint64_t n = 0; n < count; ++n) {
    const int16_t element = value(member, first + n);
    std::memcpy(&memory[n * sizeof element], &element, sizeof element);
  }
  return memory;
}

CollectiveRequest request_for(pw_collective_kind kind, uint32_t members, uint64_t count) {
  CollectiveRequest request;
  request.kind = kind;
  request.element = Element::int16;
  request.ranks.resize(members);
  std::iota(request.ranks.begin(), request.ranks.end(), 10);
  request.root = static_cast<int32_t>(10 + members - 1);
  request.count = count;
  return request;
}

class Group {
 public:
  Group(const CollectiveRequest& request, CollectiveMethod method, bool in_place) : request_(request) {
    for (uint32_t m = 0; m < request.members(); ++m) {
      Member& member = members_.emplace_back();
      member.schedule = schedule_of(request, method, m, in_place);
      member.to.resize(to_bytes(request, m));
      member.from = values(m, from_bytes(request, m) / sizeof(int16_t));
      member.scratch.resize(member.schedule.scratch_bytes);
      if (request.kind == PW_BROADCAST) member.to = values(m, request.count);
    }
  }

  Member& operator[](uint32_t member) { return members_[member]; }

  void run() {
    for (uint32_t round = 0; round < 2; ++round) {
      for (uint32_t m = 0; m < members_.size(); ++m) combine(m, round);
      std::vector<MemberMessage> unmatched;
      for (uint32_t m = 0; m < members_.size(); ++m)
        for (const MemberMessage& send : members_[m].schedule.sends)
          if (send.round == round) deliver(m, send);
    }
    for (const Member& member : members_) EXPECT_EQ(member.schedule.receives.size(), 0u) << "never sent";
  }

 private:
  void combine(uint32_t m, uint32_t round) {
    Member& member = members_[m];
    for (const Combination& combination : member.schedule.combinations)
      if (combination.round == round)
        host_reduce({request_.element, request_.combine, request_.members(), m, combination.count,
                     combination.stride, member.to.data() + combination.to,
                     member.from.data() + combination.from, member.scratch.data()});
  }
  // Each message is sent before any round that comes after it changes its source.
  void deliver(uint32_t from, const MemberMessage& send) {
    std::vector<MemberMessage>& receives = members_[send.member].schedule.receives;
    const auto match = std::ranges::find_if(receives, [&](const MemberMessage& receive) {
      return receive.member == from && receive.round == send.round;
    });
    ASSERT_NE(match, receives.end()) << "a send that nobody receives";
    ASSERT_EQ(match->bytes, send.bytes);
    const Memory& source = members_[from].in(send.buffer);
    Memory& target = members_[send.member].in(match->buffer);
    ASSERT_LE(send.offset + send.bytes, source.size());
    ASSERT_LE(match->offset + match->bytes, target.size());
    std::memcpy(target.data() + match->offset, source.data() + send.offset, send.bytes);
    receives.erase(match);
  }

  const CollectiveRequest& request_;
  std::vector<Member> members_;
};

int16_t sum_of_all(uint32_t members, uint64_t index) {
  int sum = 0;
  for (uint32_t m = 0; m < members; ++m) sum += value(m, index);
  return static_cast<int16_t>(sum);
}

Memory sums(uint32_t members, uint64_t first, uint64_t count) {
  Memory memory(count * sizeof(int16_t));
  for (uint64_t n = 0; n < count; ++n) {
    const int16_t sum = sum_of_all(members, first + n);
    std::memcpy(&memory[n * sizeof sum], &sum, sizeof sum);
  }
  return memory;
}

const std::vector<uint32_t> kMembers{1, 2, 3, 4, 7};
const std::vector<uint64_t> kCounts{0, 1, 63, 64, 65, 200, 1000};

TEST(Schedules, AnAllReduceGivesTheSumToAll) {
  for (const uint32_t members : kMembers)
    for (const uint64_t count : kCounts)
      for (const CollectiveMethod method : methods_of(PW_ALL_REDUCE, members)) {
        const CollectiveRequest request = request_for(PW_ALL_REDUCE, members, count);
        Group group(request, method, false);
        group.run();
        for (uint32_t m = 0; m < members; ++m)
          EXPECT_EQ(group[m].to, sums(members, 0, count))
              << members << " " << count << " " << name_of(method);
      }
}

// In place, a part that another member has sent back may not lie where operands are still to be sent from.
TEST(Schedules, AnAllReduceOverwritesOnlyWhatItHasSent) {
  for (const uint32_t members : kMembers)
    for (const CollectiveMethod method : methods_of(PW_ALL_REDUCE, members))
      for (uint32_t m = 0; m < members; ++m) {
        const Schedule schedule = schedule_of(request_for(PW_ALL_REDUCE, members, 1000), method, m, true);
        for (const MemberMessage& receive : schedule.receives) {
          if (receive.buffer != Buffer::to) continue;
          for (const MemberMessage& send : schedule.sends) {
            const bool overlap = send.buffer == Buffer::from &&
                                 send.offset < receive.offset + receive.bytes &&
                                 receive.offset < send.offset + send.bytes;
            EXPECT_TRUE(!overlap || (send.round < receive.round && send.member == receive.member));
          }
        }
      }
}

TEST(Schedules, AReduceScatterGivesEachItsPart) {
  for (const uint32_t members : kMembers) {
    CollectiveRequest request = request_for(PW_REDUCE_SCATTER, members, 0);
    for (uint32_t m = 0; m < members; ++m) request.counts.push_back(70 * m);
    Group group(request, CollectiveMethod::one_shot, false);
    group.run();
    for (uint32_t m = 0; m < members; ++m)
      EXPECT_EQ(group[m].to, sums(members, part_offset(request, m) / 2, request.counts[m])) << m;
  }
}

TEST(Schedules, AnAllGatherGivesAllPartsToAll) {
  for (const uint32_t members : kMembers) {
    CollectiveRequest request = request_for(PW_ALL_GATHER, members, 0);
    for (uint32_t m = 0; m < members; ++m) request.counts.push_back(30 * (members - m) - 30);
    Memory all;
    for (uint32_t m = 0; m < members; ++m)
      std::ranges::copy(values(m, request.counts[m]), std::back_inserter(all));
    Group group(request, CollectiveMethod::one_shot, false);
    group.run();
    for (uint32_t m = 0; m < members; ++m) EXPECT_EQ(group[m].to, all);
  }
}

TEST(Schedules, AnAllGatherInPlaceSendsNothingToItself) {
  CollectiveRequest request = request_for(PW_ALL_GATHER, 3, 0);
  request.counts = {5, 5, 5};
  EXPECT_EQ(schedule_of(request, CollectiveMethod::one_shot, 1, false).sends.size(), 3u);
  EXPECT_EQ(schedule_of(request, CollectiveMethod::one_shot, 1, true).sends.size(), 2u);
}

TEST(Schedules, ABroadcastGivesAllWhatTheRootHas) {
  for (const uint32_t members : kMembers)
    for (const uint64_t count : kCounts)
      for (const CollectiveMethod method : methods_of(PW_BROADCAST, members)) {
        const CollectiveRequest request = request_for(PW_BROADCAST, members, count);
        Group group(request, method, false);
        group.run();
        for (uint32_t m = 0; m < members; ++m)
          EXPECT_EQ(group[m].to, values(members - 1, count))
              << members << " " << count << " " << name_of(method);
      }
}

TEST(Schedules, AnAllToAllGivesEachAPartOfEach) {
  constexpr uint32_t kSize = 4;
  const auto count_of = [](uint32_t sender, uint32_t receiver) { return uint64_t{10} * sender + receiver; };
  std::vector<CollectiveRequest> requests;
  for (uint32_t m = 0; m < kSize; ++m) {
    CollectiveRequest& request = requests.emplace_back(request_for(PW_ALL_TO_ALL, kSize, 0));
    for (uint32_t other = 0; other < kSize; ++other) {
      request.counts.push_back(count_of(m, other));
      request.receive_counts.push_back(count_of(other, m));
    }
  }
  for (uint32_t m = 0; m < kSize; ++m) {
    const Schedule mine = schedule_of(requests[m], CollectiveMethod::one_shot, m, false);
    EXPECT_EQ(mine.sends.size(), m == 0 ? kSize - 1 : kSize);  // nothing from rank 0 to itself
    uint64_t received = 0;
    for (const MemberMessage& receive : mine.receives) {
      const Schedule theirs =
          schedule_of(requests[receive.member], CollectiveMethod::one_shot, receive.member, false);
      const auto send = std::ranges::find(theirs.sends, m, &MemberMessage::member);
      ASSERT_NE(send, theirs.sends.end());
      EXPECT_EQ(send->bytes, receive.bytes);
      EXPECT_EQ(receive.offset, received);
      received += receive.bytes;
    }
    EXPECT_EQ(received, to_bytes(requests[m], m));
  }
}

TEST(Schedules, ABarrierExchangesAWordWithEachOther) {
  for (const uint32_t members : kMembers) {
    Group group(request_for(PW_BARRIER, members, 0), CollectiveMethod::one_shot, false);
    EXPECT_EQ(group[0].schedule.sends.size(), members - 1);
  }
}

}  // namespace
}  // namespace pw::collective
