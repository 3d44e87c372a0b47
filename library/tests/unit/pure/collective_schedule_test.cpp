// The schedules of all members, carried out in memory: what every member ends with is what the collective is
// defined to give, whatever the method, the numbers of elements and of members, and who is late.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "collective/schedule.h"
#include "device/host/reduction.h"

namespace pw::collective {
namespace {

using Memory = std::vector<unsigned char>;

// Elements are int16, so that parts seldom end at a multiple of 128 bytes.
constexpr uint64_t kUnit = sizeof(int16_t);

int16_t value(uint32_t member, uint64_t index) {
  return static_cast<int16_t>(1000 * (member + 1) + 7 * index % 911);
}

Memory values(uint32_t member, uint64_t count) {
  Memory memory(count * kUnit);
  for (uint64_t n = 0; n < count; ++n) {
    const int16_t element = value(member, n);
    std::memcpy(&memory[n * kUnit], &element, kUnit);
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

// A member, with its buffers in one memory, where they overlap if the collective is in place.
class Member {
 public:
  Member(const CollectiveRequest& request, const Placement& placement, CollectiveMethod method,
         uint32_t member, bool in_place)
      : schedule(schedule_of(request, placement, method, member, in_place)),
        to_bytes_(to_bytes(request, member)) {
    const uint64_t from_size = from_bytes(request, member), part = in_place ? part_begin(request, member) : 0;
    const bool from_in_to = in_place && request.kind != PW_REDUCE_SCATTER;
    const bool to_in_from = in_place && request.kind == PW_REDUCE_SCATTER;
    from_ = from_in_to ? part : in_place ? 0 : to_bytes_;
    to_ = to_in_from ? part : 0;
    scratch_ = in_place ? std::max(to_bytes_, from_size) : to_bytes_ + from_size;
    memory_.resize(scratch_ + schedule.scratch_bytes);
    const bool broadcasts = request.kind == PW_BROADCAST;
    const Memory operands = values(member, (broadcasts ? to_bytes_ : from_size) / kUnit);
    std::ranges::copy(operands, memory_.begin() + static_cast<std::ptrdiff_t>(broadcasts ? to_ : from_));
    for (const auto* messages : {&schedule.sends, &schedule.receives})
      for (const MemberMessage& message : *messages) rounds_ = std::max(rounds_, message.round + 1);
    for (const Combination& combination : schedule.combinations)
      rounds_ = std::max(rounds_, combination.round + 1);
  }

  unsigned char* at(const BufferRange& range) {
    const uint64_t begin = range.buffer == Buffer::to ? to_ : range.buffer == Buffer::from ? from_ : scratch_;
    EXPECT_LE(begin + range.offset + range.bytes, memory_.size());
    return memory_.data() + begin + range.offset;
  }
  [[nodiscard]] Memory result() const {
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(to_);
    return {begin, begin + static_cast<std::ptrdiff_t>(to_bytes_)};
  }
  // Everything of the rounds before has arrived.
  [[nodiscard]] bool can_go_on() const {
    return round < rounds_ &&
           std::ranges::all_of(
               schedule.receives, [this](uint32_t of) { return of >= round; }, &MemberMessage::round);
  }
  [[nodiscard]] bool is_done() const { return round == rounds_ && schedule.receives.empty(); }

  Schedule schedule;   ///< receives that have arrived are taken out
  uint32_t round = 0;  ///< the next one

 private:
  static uint64_t part_begin(const CollectiveRequest& request, uint32_t member) {
    return request.counts.empty() ? 0 : part_offset(request, member);
  }

  uint64_t to_bytes_, to_ = 0, from_ = 0, scratch_ = 0;
  uint32_t rounds_ = 0;
  Memory memory_;
};

// Runs the schedules of all members. A member begins a round as soon as it has received everything of the
// rounds before, and its messages then arrive at once, also at members that are rounds behind. Which member
// goes on next is drawn, so that a message that arrives too early for its receiver changes a result.
class Group {
 public:
  Group(const CollectiveRequest& request, const Placement& placement, CollectiveMethod method,
        bool in_place = false)
      : request_(request) {
    for (uint32_t m = 0; m < request.members(); ++m)
      members_.emplace_back(request, placement, method, m, in_place);
  }

  Memory result(uint32_t member) const { return members_[member].result(); }

  void run(unsigned seed) {
    std::mt19937 draw(seed);
    for (;;) {
      std::vector<uint32_t> ready;
      for (uint32_t m = 0; m < members_.size(); ++m)
        if (members_[m].can_go_on()) ready.push_back(m);
      if (ready.empty()) break;
      go_on(ready[draw() % ready.size()]);
    }
    for (const Member& member : members_) EXPECT_TRUE(member.is_done()) << "waits for ever";
  }

 private:
  void go_on(uint32_t m) {
    Member& member = members_[m];
    const uint32_t round = member.round++;
    for (const Combination& combination : member.schedule.combinations)
      if (combination.round == round)
        host_reduce({request_.element, request_.combine, combination.operands, combination.place,
                     combination.count, combination.stride, member.at(combination.to),
                     member.at(combination.local),
                     member.at({Buffer::scratch, combination.others,
                                (combination.operands - 1) * combination.stride})});
    for (const MemberMessage& send : member.schedule.sends)
      if (send.round == round) deliver(m, send);
  }
  void deliver(uint32_t from, const MemberMessage& send) {
    Member& receiver = members_[send.member];
    const auto match = std::ranges::find_if(receiver.schedule.receives, [&](const MemberMessage& receive) {
      return receive.member == from && receive.round == send.round && receive.part == send.part;
    });
    ASSERT_NE(match, receiver.schedule.receives.end()) << "a send that nobody receives";
    ASSERT_EQ(match->range.bytes, send.range.bytes);
    std::memmove(receiver.at(match->range), members_[from].at(send.range), send.range.bytes);
    receiver.schedule.receives.erase(match);
  }

  const CollectiveRequest& request_;
  std::vector<Member> members_;
};

Memory sums(uint32_t members, uint64_t first, uint64_t count) {
  Memory memory(count * kUnit);
  for (uint64_t n = 0; n < count; ++n) {
    int sum = 0;
    for (uint32_t m = 0; m < members; ++m) sum += value(m, first + n);
    const auto wrapped = static_cast<int16_t>(sum);
    std::memcpy(&memory[n * kUnit], &wrapped, kUnit);
  }
  return memory;
}

const std::vector<uint32_t> kMembers{1, 2, 3, 4, 5, 7, 8};
const std::vector<uint64_t> kCounts{0, 1, 63, 64, 65, 200, 1000};

// All members on one host; in turn on two; one after another on two and on four, as far as that is even.
std::vector<Hosts> placements(uint32_t members) {
  std::vector<Hosts> all{Hosts(members, 0)};
  Hosts in_turn, halves, quarters;
  for (uint32_t m = 0; m < members; ++m) {
    in_turn.push_back(m % 2);
    halves.push_back(2 * m / members);
    quarters.push_back(4 * m / members);
  }
  for (const Hosts& hosts : {in_turn, halves, quarters})
    if (members > 1) all.push_back(hosts);
  return all;
}

// Calls `check(group, text)` with every method and placement, in place and not, after several runs.
template <typename Check>
void run_all(const CollectiveRequest& request, bool has_in_place, Check&& check) {
  for (const Hosts& hosts : placements(request.members()))
    for (const CollectiveMethod method : methods_of(request, hosts))
      for (const bool in_place : {false, true})
        for (unsigned seed = 0; seed < 8 && (has_in_place || !in_place); ++seed) {
          Group group(request, hosts, method, in_place);
          group.run(seed);
          check(group, std::to_string(request.members()) + " members, " + name_of(method) +
                           (in_place ? ", in place" : ""));
        }
}

TEST(Schedules, AnAllReduceGivesTheSumToAll) {
  for (const uint32_t members : kMembers)
    for (const uint64_t count : kCounts)
      run_all(request_for(PW_ALL_REDUCE, members, count), true, [&](const Group& group, const auto& text) {
        for (uint32_t m = 0; m < members; ++m)
          EXPECT_EQ(group.result(m), sums(members, 0, count)) << text << ", " << count;
      });
}

// Hosts at the nodes of a torus, `on_host` members on each, whose numbers go through the dimensions
// backwards.
Placement torus(const std::vector<uint32_t>& extents, uint32_t on_host) {
  Hosts hosts;
  std::vector<std::vector<uint32_t>> coordinates(extents.size());
  uint32_t nodes = 1;
  for (const uint32_t extent : extents) nodes *= extent;
  for (uint32_t member = 0; member < nodes * on_host; ++member) {
    hosts.push_back(member % nodes);
    uint32_t rest = nodes - 1 - member % nodes;
    for (size_t d = 0; d < extents.size(); rest /= extents[d++]) coordinates[d].push_back(rest % extents[d]);
  }
  return {hosts, coordinates};
}

struct TorusCase {
  std::vector<uint32_t> extents;
  uint32_t on_host;
  size_t rounds, sends;
};

TEST(Schedules, AHierarchyGoesThroughTheDimensionsOfATorus) {
  for (const TorusCase& at : {TorusCase{{4, 4}, 1, 4, 12}, TorusCase{{3, 2}, 2, 6, 8},
                              TorusCase{{1, 5, 2}, 1, 4, 10}, TorusCase{{2, 2, 2, 2}, 1, 8, 8}}) {
    const Placement placement = torus(at.extents, at.on_host);
    const auto members = static_cast<uint32_t>(placement.hosts.size());
    for (const uint64_t count : {uint64_t{1}, uint64_t{100}, uint64_t{1000}}) {
      const CollectiveRequest request = request_for(PW_ALL_REDUCE, members, count);
      ASSERT_EQ(methods_of(request, placement).back(), CollectiveMethod::hierarchical);
      Group group(request, placement, CollectiveMethod::hierarchical);
      group.run(static_cast<unsigned>(count));
      for (uint32_t m = 0; m < members; ++m) EXPECT_EQ(group.result(m), sums(members, 0, count)) << m;
    }
    const CollectiveRequest large = request_for(PW_ALL_REDUCE, members, 4096);
    const Schedule schedule = schedule_of(large, placement, CollectiveMethod::hierarchical, 0, false);
    EXPECT_EQ(schedule.sends.size(), at.sends);
    EXPECT_EQ(schedule.sends.back().round + 1, at.rounds);
  }
}

TEST(Schedules, CoordinatesThatAreNoGridOfHostsLeaveTheHierarchyOfHosts) {
  const CollectiveRequest request = request_for(PW_ALL_REDUCE, 4, 100);
  const auto has_hierarchy = [&](const Placement& placement) {
    return methods_of(request, placement).back() == CollectiveMethod::hierarchical;
  };
  const Hosts four{0, 1, 2, 3}, two{0, 0, 1, 1};
  EXPECT_TRUE(has_hierarchy({four, {{0, 0, 7, 7}, {3, 5, 3, 5}}}));
  EXPECT_FALSE(has_hierarchy({four, {{0, 1, 2, 3}}}));                // one dimension
  EXPECT_FALSE(has_hierarchy({four, {{0, 0, 1, 2}, {0, 1, 0, 0}}}));  // no grid
  EXPECT_TRUE(has_hierarchy({two, {{0, 1, 0, 1}, {0, 0, 1, 1}}}));    // of members, not of hosts
  EXPECT_TRUE(has_hierarchy({two, {{0, 0, 3, 3}, {1, 1, 2, 2}}}));    // a diagonal, with two on each host
}

TEST(Schedules, AReduceScatterGivesEachItsPart) {
  for (const uint32_t members : kMembers) {
    CollectiveRequest request = request_for(PW_REDUCE_SCATTER, members, 0);
    for (uint32_t m = 0; m < members; ++m) request.counts.push_back(70 * m);
    run_all(request, true, [&](const Group& group, const auto& text) {
      for (uint32_t m = 0; m < members; ++m)
        EXPECT_EQ(group.result(m), sums(members, part_offset(request, m) / kUnit, request.counts[m])) << text;
    });
  }
}

TEST(Schedules, AnAllGatherGivesAllPartsToAll) {
  for (const uint32_t members : kMembers) {
    CollectiveRequest request = request_for(PW_ALL_GATHER, members, 0);
    for (uint32_t m = 0; m < members; ++m) request.counts.push_back(m == 1 ? 0 : 30 * (members - m));
    Memory all;
    for (uint32_t m = 0; m < members; ++m)
      std::ranges::copy(values(m, request.counts[m]), std::back_inserter(all));
    run_all(request, true, [&](const Group& group, const auto& text) {
      for (uint32_t m = 0; m < members; ++m) EXPECT_EQ(group.result(m), all) << text;
    });
  }
}

TEST(Schedules, AnAllGatherInPlaceSendsNothingToItself) {
  CollectiveRequest request = request_for(PW_ALL_GATHER, 3, 0);
  request.counts = {5, 5, 5};
  const Hosts hosts(3, 0);
  EXPECT_EQ(schedule_of(request, hosts, CollectiveMethod::one_shot, 1, false).sends.size(), 3u);
  EXPECT_EQ(schedule_of(request, hosts, CollectiveMethod::one_shot, 1, true).sends.size(), 2u);
}

TEST(Schedules, ABroadcastGivesAllWhatTheRootHas) {
  for (const uint32_t members : kMembers)
    for (const uint64_t count : kCounts)
      run_all(request_for(PW_BROADCAST, members, count), false, [&](const Group& group, const auto& text) {
        for (uint32_t m = 0; m < members; ++m)
          EXPECT_EQ(group.result(m), values(members - 1, count)) << text << ", " << count;
      });
}

TEST(Schedules, AnAllToAllGivesEachAPartOfEach) {
  constexpr uint32_t kSize = 4;
  const auto count_of = [](uint32_t sender, uint32_t receiver) { return uint64_t{10} * sender + receiver; };
  std::vector<Schedule> schedules;
  std::vector<uint64_t> received_bytes;
  for (uint32_t m = 0; m < kSize; ++m) {
    CollectiveRequest request = request_for(PW_ALL_TO_ALL, kSize, 0);
    for (uint32_t other = 0; other < kSize; ++other) {
      request.counts.push_back(count_of(m, other));
      request.receive_counts.push_back(count_of(other, m));
    }
    schedules.push_back(schedule_of(request, Hosts(kSize, 0), CollectiveMethod::one_shot, m, false));
    received_bytes.push_back(to_bytes(request, m));
  }
  EXPECT_EQ(schedules[0].sends.size(), kSize - 1);  // nothing from rank 0 to itself
  for (uint32_t m = 0; m < kSize; ++m) {
    uint64_t received = 0;
    for (const MemberMessage& receive : schedules[m].receives) {
      const auto send = std::ranges::find(schedules[receive.member].sends, m, &MemberMessage::member);
      ASSERT_NE(send, schedules[receive.member].sends.end());
      EXPECT_EQ(send->range.bytes, receive.range.bytes);
      EXPECT_EQ(receive.range.offset, received);
      received += receive.range.bytes;
    }
    EXPECT_EQ(received, received_bytes[m]);
  }
}

// After a barrier every member has heard, directly or through others, of all.
TEST(Schedules, ABarrierTellsEachMemberOfAllOthers) {
  for (const uint32_t members : kMembers) {
    const CollectiveRequest request = request_for(PW_BARRIER, members, 0);
    const Hosts hosts(members, 0);
    for (const CollectiveMethod method : methods_of(request, hosts)) {
      std::vector<std::vector<bool>> heard(members, std::vector<bool>(members, false));
      for (uint32_t m = 0; m < members; ++m) heard[m][m] = true;
      for (uint32_t round = 0; round < members; ++round) {
        const auto before = heard;
        for (uint32_t m = 0; m < members; ++m)
          for (const MemberMessage& receive : schedule_of(request, hosts, method, m, false).receives)
            if (receive.round == round)
              for (uint32_t other = 0; other < members; ++other)
                if (before[receive.member][other]) heard[m][other] = true;
      }
      for (const auto& of : heard) EXPECT_EQ(of, std::vector<bool>(members, true)) << name_of(method);
    }
  }
}

// How many rounds a method has, and how many messages a member sends at most.
TEST(Schedules, TheNumberOfMessagesIsThatOfTheMethod) {
  struct Case {
    pw_collective_kind kind;
    CollectiveMethod method;
    uint32_t members;
    size_t rounds, sends;
  };
  using enum CollectiveMethod;
  for (const Case& at : {Case{PW_ALL_REDUCE, one_shot, 8, 1, 7}, Case{PW_ALL_REDUCE, two_shot, 8, 2, 14},
                         Case{PW_ALL_REDUCE, tree, 8, 3, 3}, Case{PW_ALL_REDUCE, tree, 7, 4, 3},
                         Case{PW_ALL_REDUCE, ring, 8, 14, 14}, Case{PW_ALL_REDUCE, hierarchical, 8, 4, 8},
                         Case{PW_BROADCAST, tree, 8, 3, 3}, Case{PW_BARRIER, tree, 8, 3, 3},
                         Case{PW_BARRIER, tree, 5, 3, 3}}) {
    const CollectiveRequest request = request_for(at.kind, at.members, 4096);
    size_t rounds = 0, sends = 0;
    for (uint32_t m = 0; m < at.members; ++m) {
      const Schedule schedule = schedule_of(request, {0, 0, 0, 0, 1, 1, 1, 1}, at.method, m, false);
      for (const MemberMessage& send : schedule.sends) rounds = std::max<size_t>(rounds, send.round + 1);
      sends = std::max(sends, schedule.sends.size());
    }
    EXPECT_EQ(rounds, at.rounds) << name_of(at.kind) << " " << name_of(at.method);
    EXPECT_EQ(sends, at.sends) << name_of(at.kind) << " " << name_of(at.method);
  }
}

TEST(Schedules, WhichMethodsThereAreDependsOnTheOrderOfOperands) {
  using enum CollectiveMethod;
  CollectiveRequest request = request_for(PW_ALL_REDUCE, 4, 100);
  const Hosts two_hosts{0, 0, 1, 1};
  EXPECT_EQ(methods_of(request, two_hosts),
            (std::vector{one_shot, two_shot, tree, ring, hierarchical}));  // integers
  EXPECT_EQ(methods_of(request, {0, 0, 0, 1}), (std::vector{one_shot, two_shot, tree, ring}));
  request.element = Element::float32;
  EXPECT_EQ(methods_of(request, two_hosts), (std::vector{one_shot, two_shot}));
  request.order = PW_ORDER_ANY;
  EXPECT_EQ(methods_of(request, two_hosts), (std::vector{one_shot, two_shot, tree, ring, hierarchical}));
}

TEST(Schedules, HostsAreNumberedInTheOrderOfTheirFirstMembers) {
  EXPECT_EQ(hosts_of({77, 5, 77, 9}), (Hosts{0, 1, 0, 2}));
}

}  // namespace
}  // namespace pw::collective
