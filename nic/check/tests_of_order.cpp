#include <algorithm>
#include <array>
#include <cstring>

#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

/// The gets from one far end, numbered from 1 in the order in which they were posted.
struct GetOrder {
  uint64_t posted = 0, ended = 0;
  uint64_t overtaken = 0;  ///< number of the first get that was done before an earlier one; 0: none
  uint64_t expected = 0;   ///< number of the get that should have been done then
};

std::string gets_in_order(NearEnd& near) {
  constexpr uint64_t kLeast = 40'000, kAhead = 512;
  for (uint32_t rank = 1; rank < kRanks; ++rank) near.renew(rank);
  std::array<GetOrder, kRanks> order;
  uint64_t deepest = 0;
  for (Rounds rounds(near.share_s, kLeast); rounds.next();) {
    // Most gets go to one far end, as many as there is room for; large ones come before small ones.
    const uint32_t rank = near.random.one_in(8) ? 2 + static_cast<uint32_t>(near.random.below(kFars - 1)) : 1;
    GetOrder& gets = order[rank];
    const uint64_t bytes = near.random.one_in(16) ? near.largest(16384) : near.random.between(1, 64);
    Done& done = near.end.fresh();
    done.context = &gets;
    done.number = ++gets.posted;
    done.then = [](Done& ended) {
      GetOrder& of = *static_cast<GetOrder*>(ended.context);
      if (ended.number != ++of.ended && of.overtaken == 0)
        of.overtaken = ended.number, of.expected = of.ended;
    };
    near.must_get(rank, near.random.below(4096), near.at(rank * 65536), bytes, &done);
    deepest = std::max(deepest, near.end.under_way());
    if (near.end.under_way() > near.random.below(kAhead)) near.end.progress();
    for (const GetOrder& each : order)
      if (each.overtaken != 0)
        throw Broken{
            format("get number {} from a peer was done when number {} should have been; gets from one peer "
                   "complete in the order in which they were posted",
                   each.overtaken, each.expected)};
  }
  near.end.drain("(gets)");
  return format("{} gets from {} peers, large and small, {} under way",
                order[1].ended + order[2].ended + order[3].ended, kFars, deepest);
}

/// Collects what another thread sees of rounds; each round stores a block of words v and then the word v.
struct Seen {
  static constexpr uint64_t kWord = 0, kBlock = 64;  ///< offsets
  static constexpr uint64_t kNothing = 0xA5A5A5A5;   ///< half a word of poison
  uint64_t older_at = 0, older = 0, newer = 0;  ///< a word in the block that was older than the word after
                                                ///< the block
  uint64_t before = 0;                          ///< an older value of the word, seen after a newer one
  std::atomic<uint64_t> rounds{0};              ///< number of rounds that it saw
  std::atomic<bool> overtaken{false}, back{false};
};

void poll(const Arena& arena, uint64_t words, uint64_t& last, Seen& seen) {
  const auto at = [&](uint64_t offset) {
    return std::atomic_ref(*arena.word(offset)).load(std::memory_order_acquire);
  };
  const uint64_t word = at(Seen::kWord) >> 32;
  if (word == Seen::kNothing) return;
  if (word < last) seen.before = word, seen.back = true;
  if (word == last) return;
  last = word;
  seen.rounds.fetch_add(1, std::memory_order_relaxed);
  // Starts at the end of the block, which arrives last.
  for (uint64_t remaining = words; remaining > 0; --remaining) {
    const uint64_t value = at(Seen::kBlock + (remaining - 1) * 8) >> 32;
    if (value >= word && value != Seen::kNothing) continue;
    seen.older_at = Seen::kBlock + (remaining - 1) * 8, seen.older = value, seen.newer = word;
    seen.overtaken = true;
    return;
  }
}

std::string puts_in_order(NearEnd& near) {
  constexpr uint64_t kSources = 4;
  const bool stated = near.end.states(PW_NIC_PUTS_IN_ORDER);
  bool overtook = false;
  uint64_t rounds_done = 0, rounds_seen = 0;
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{512}, near.largest(65536)}) {
    near.renew(1);
    Seen seen;
    uint64_t last = 0;
    std::array<bool, kSources> busy{};
    const uint64_t stride = NearEnd::kRoom / kSources;
    const InBackground watcher([&] { poll(near.arena(1), bytes / 8, last, seen); });
    uint64_t v = 0;
    for (Rounds rounds(near.share_s / 3, 200); rounds.next(!stated || seen.rounds >= 300);) {
      const uint64_t source = ++v % kSources, word = word_of(v);
      if (!near.await([&] { return !busy[source]; })) throw Broken{"the done of a put was not called"};
      std::fill_n(near.word(source * stride), bytes / 8, word);
      Done& done = near.end.fresh();
      done.context = &busy[source];
      done.then = [](Done& ended) { *static_cast<bool*>(ended.context) = false; };
      busy[source] = true;
      near.must_put(1, Seen::kBlock, near.at(source * stride), bytes, &done);
      demand(near.put_copied(1, Seen::kWord, &word, 8, nullptr), near.end, "a put of 8 bytes");
      if (near.random.one_in(4))
        near.must_put(2, Seen::kBlock, near.at(source * stride), std::min<uint64_t>(bytes, 4096), nullptr);
      near.end.progress();
      if (stated && seen.overtaken)
        throw Broken{format(
            "PW_NIC_PUTS_IN_ORDER is stated, but in round {} a word of 8 bytes was seen when the word at "
            "offset {} of the {} bytes that were put ahead of it was still that of round {}; do not state it",
            seen.newer, seen.older_at, bytes, seen.older)};
      if (stated && seen.back)
        throw Broken{format(
            "PW_NIC_PUTS_IN_ORDER is stated, but a word that was put in round {} came after those of later "
            "rounds; do not state it",
            seen.before)};
    }
    near.end.drain("(puts)");
    overtook |= seen.overtaken || seen.back;
    if (stated)
      near.arrive(1, Seen::kWord, word_of(v), format("the last of {} puts of 8 bytes to one place", v));
    rounds_done += v, rounds_seen += seen.rounds;
  }
  if (stated)
    return format("stated, and kept in {} rounds, of which {} were looked at as they came", rounds_done,
                  rounds_seen);
  throw Absent{overtook ? "not stated, and puts did overtake" : "not stated (none was seen to overtake)"};
}

std::string gets_behind_puts(NearEnd& near) {
  const bool stated = near.end.states(PW_NIC_GETS_BEHIND_PUTS);
  near.renew(1);
  uint64_t older = 0, count = 0;
  for (Rounds rounds(near.share_s, 500); rounds.next(); ++count) {
    // Several puts, small and large, and a get of the last word of one of them.
    constexpr uint64_t kPuts = 4, kStride = 131072;
    const uint64_t bytes = near.random.one_in(2) ? 8 : near.largest(near.random.one_in(2) ? 512 : 65536);
    const uint64_t puts = near.random.between(1, kPuts), word = word_of(count + 1);
    for (uint64_t i = 0; i < puts; ++i) {
      std::fill_n(near.word(i * kStride), bytes / 8, word);
      near.must_put(1, i * kStride, near.at(i * kStride), bytes, &near.end.fresh());
    }
    const uint64_t chosen = near.random.below(puts);
    Done& got = near.end.fresh();
    near.must_get(1, chosen * kStride + bytes - 8, near.at(NearEnd::kRoom - 8), 8, &got);
    near.end.wait(got, "a get");
    const uint64_t marker = *near.word(NearEnd::kRoom - 8);
    near.end.drain("(puts)");
    older += marker != word;
    if (stated && marker != word)
      throw Broken{format(
          "PW_NIC_GETS_BEHIND_PUTS is stated, but in round {} a get after a put of {} bytes read {:#x}, "
          "which was there before, and not {:#x}; do not state it",
          count, bytes, marker, word)};
    if (older != 0)
      std::fill_n(near.arena(1).word(0), kPuts * kStride / 8, word);  // so that late bytes belong to this
                                                                      // round
  }
  if (stated) return format("stated, and kept in {} rounds", count);
  throw Absent{older != 0 ? "not stated, and gets did overtake" : "not stated (none was seen to overtake)"};
}

}  // namespace

std::span<const Test> tests_of_order() {
  static constexpr Test kTests[] = {
      {"gets in order", gets_in_order, 1.2},
      {"puts in order", puts_in_order, 0.9},
      {"gets behind puts", gets_behind_puts, 0.5},
  };
  return kTests;
}

}  // namespace pw::nic::check
