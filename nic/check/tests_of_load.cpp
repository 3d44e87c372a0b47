// Tests everything at once, and what that leaves behind in descriptors, threads and memory.
#include <cstring>

#include "nic/check/counts.h"
#include "nic/check/tests.h"
#include "nic/check/traffic.h"

namespace pw::nic::check {
namespace {

/// All ranks with `there` set put and get towards all. Returns how much they moved together.
Moved everybody(NearEnd& near, double share_s, std::array<uint8_t, kRanks> there) {
  Places places{};
  places.there = there;
  places.seed = near.random.next();
  places.share_ns = static_cast<uint64_t>(share_s * 1e9);
  std::memset(near.arena(0).base(), static_cast<int>(kPoison), near.arena(0).bytes());
  pw_nic_key mine{};
  pw_nic_memory* memory = near.end.add(near.arena(0).span(), mine);
  const uint64_t sum = *near.arena(0).word(kSumWord);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    if (there[rank] == 0) continue;
    if (rank > 0) near.renew(rank);
    places.address[rank] = near.address(rank);
    places.key[rank] = rank == 0 ? mine : near.key(rank);
  }
  for (uint32_t rank = 1; rank < kRanks; ++rank)
    if (there[rank] != 0) near.tell(rank, {CommandKind::traffic, 0, pack(places)});
  Moved moved = run_traffic(near.end, near.stand(), 0, places);
  for (uint32_t rank = 1; rank < kRanks; ++rank) {
    if (there[rank] == 0) continue;
    const Reply reply = near.hear(rank);
    if (reply.status != PW_NIC_OK) throw Broken{reply.why};
    Moved theirs;
    std::memcpy(&theirs, reply.bytes.data(), sizeof theirs);
    moved.puts += theirs.puts, moved.gets += theirs.gets, moved.adds += theirs.adds,
        moved.renewals += theirs.renewals;
  }
  if (moved.adds > 0)
    near.arrive(0, kSumWord, sum + moved.adds,
                format("the sum of {} fetch_add() of 4 processes", moved.adds));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    if (there[rank] == 0) continue;
    const Arena& arena = near.arena(rank);
    for (uint64_t i = 0; i < arena.bytes(); ++i)
      if ((i < arena.from() || i >= arena.from() + arena.room()) && arena.base()[i] != kPoison)
        throw Broken{format("a byte outside of the registered memory of process {} was stored", rank)};
  }
  near.end.remove(memory);
  return moved;
}

std::string traffic(NearEnd& near) {
  constexpr uint64_t kLeast = 20'000;
  Moved all;
  for (Rounds rounds(0, 1); rounds.next(all.puts >= kLeast);) {
    const Moved moved = everybody(near, near.share_s, {1, 1, 1, 1});
    all.puts += moved.puts, all.gets += moved.gets, all.renewals += moved.renewals;
  }
  return format(
      "{} puts and {} gets between {} processes and themselves, memory registered anew {} meanwhile; each "
      "arrived, none in a wrong place",
      all.puts, all.gets, kRanks, all.renewals == 1 ? "once" : format("{} times", all.renewals));
}

/// Counts what rounds of set-up or of operations leave behind, in several passes of equally many rounds.
class Leaks {
 public:
  explicit Leaks(NearEnd& near) : near_(near) {}

  template <typename Round>
  void look(const char* action, uint64_t rounds, Round&& round) {
    constexpr int kPasses = 4;  // the first pass fills what is kept for later
    std::array<std::array<Counts, 2>, kPasses> at;
    for (auto& counts : at) {
      for (uint64_t i = 0; i < rounds; ++i) round();
      near_.end.drain("of many");
      counts = both();
    }
    for (size_t end = 0; end < 2; ++end) {
      for_each(at, end, &Counts::descriptors, rounds, "file descriptors", action);
      for_each(at, end, &Counts::threads, rounds, "threads", action);
      for_each(at, end, &Counts::mappings, rounds, "mappings of memory", action);
      for_each(at, end, &Counts::heap_bytes, rounds * 8, "bytes of memory", action);
    }
  }

 private:
  std::array<Counts, 2> both() {
    std::array<Counts, 2> counts{count_all(), {}};
    const Reply reply = near_.ask(1, {CommandKind::counts, 0, {}});
    std::memcpy(&counts[1], reply.bytes.data(), sizeof counts[1]);
    return counts;
  }
  template <typename At>
  static void for_each(const At& at, size_t end, uint64_t Counts::* of, uint64_t least, const char* things,
                       const char* action) {
    for (size_t pass = 1; pass < at.size(); ++pass)
      if (at[pass][end].*of < at[pass - 1][end].*of + least * 3 / 4) return;  // it does not grow in each pass
    throw Broken{format("{} are lost, {} after {} and {} at first{}: about one with every {}", things,
                        at.back()[end].*of, at.size(), at.front()[end].*of,
                        end == 0 ? "" : " (at the far end)", action)};
  }
  NearEnd& near_;
};

std::string leaks(NearEnd& near) {
  constexpr uint64_t kConnects = 12, kOpens = 3, kOperations = 1500;
  near.renew(1);
  // The tests' own `done` structs are made now, so that they are not counted.
  for (int i = 0; i < 256; ++i) near.must_get(1, 0, near.at(0), 8, &near.end.fresh());
  near.end.drain("of many");
  Leaks leaks(near);
  leaks.look("connect", kConnects, [&] {
    pw_nic_peer* peer = near.end.connect(near.address(1));
    pw_nic_remote* remote = near.end.import(peer, near.key(1));
    Done& done = near.end.fresh();
    demand(near.end.get({remote, 0, near.at(0), near.memory(), 8}, &done), near.end, "a get");
    near.end.wait(done, "a get");
    near.end.release(remote);
    near.end.disconnect(peer);
  });
  leaks.look("register_memory", kConnects, [&] {
    pw_nic_span span{};
    span.size = sizeof span;
    span.address = near.arena(0).at(0);
    span.bytes = near.arena(0).room();
    span.descriptor = near.arena(1).span().descriptor;
    span.descriptor_offset = near.arena(1).from();
    span.address = near.arena(1).at(0);
    pw_nic_key key{};
    near.end.remove(near.end.add(span, key));
  });
  leaks.look("operation", kOperations, [&] {
    near.must_put(1, 0, near.at(0), 16, &near.end.fresh());
    near.must_get(1, 0, near.at(64), 16, &near.end.fresh());
    if (near.end.under_way() > 16) near.end.progress();
  });
  leaks.look("operation that is refused", kOperations / 5, [&] {
    near.get(1, NearEnd::kRoom, near.at(0), 16, &near.end.fresh());
    if (near.end.under_way() > 16) near.end.progress();
  });
  leaks.look("open", kOpens, [&] {
    End end(Plugin::load(near.stand().options.plugin), near.stand().job, near.stand().options.configuration);
    end.close();
  });
  return "descriptors, threads, mappings and heap, with connections, registrations, operations and endpoints";
}

}  // namespace

Moved everybody_but(NearEnd& near, uint32_t dead, double share_s) {
  std::array<uint8_t, kRanks> there{1, 1, 1, 1};
  there[dead] = 0;
  return everybody(near, share_s, there);
}

std::span<const Test> tests_of_load() {
  static constexpr Test kTests[] = {{"random traffic", traffic, 2.0}, {"nothing is left behind", leaks}};
  return kTests;
}

}  // namespace pw::nic::check
