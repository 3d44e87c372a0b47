// Tests of a peer that dies, and of what continues to work. Other tests cannot use their stand.
#include <cstring>

#include "nic/check/tests.h"
#include "nic/check/traffic.h"

namespace pw::nic::check {

Moved everybody_but(NearEnd& near, uint32_t dead, double share_s);

namespace {

constexpr uint32_t kVictim = 3;

/// Waits until operations of a kind towards the dead peer are refused or fail.
void unreachable(NearEnd& near, bool put, uint64_t wait_ns) {
  const Deadline deadline(wait_ns);
  for (pw_nic_status status = PW_NIC_OK; status != PW_NIC_UNREACHABLE;) {
    if (deadline.passed())
      throw Broken{format("{:.1f} s after a process died {} towards it are {}, not PW_NIC_UNREACHABLE",
                          static_cast<double>(wait_ns) / 1e9, put ? "puts" : "gets", name_of(status))};
    Done& done = near.end.fresh();
    status = put ? near.put(kVictim, 0, near.at(0), 64, &done) : near.get(kVictim, 0, near.at(0), 64, &done);
    if (status != PW_NIC_OK) continue;
    near.end.wait(done, "an operation towards a process that died");
    status = done.status;
  }
}

std::string dies(NearEnd& near) {
  const uint64_t wait_ns = 3 * longest_wait_ns;  // a NIC may notice a death only by silence
  for (uint32_t rank = 1; rank < kRanks; ++rank) near.renew(rank);
  uint64_t under_way = 0;
  for (int i = 0; i < 64; ++i) {
    const uint64_t bytes = i % 4 == 0 ? near.largest(65536) : 64;
    const Move move{near.remote(kVictim), 0, near.at(0), near.memory(), bytes};
    Done& done = near.end.fresh();
    const pw_nic_status status = i % 2 == 0 ? near.end.try_put(move, &done) : near.end.try_get(move, &done);
    if (status == PW_NIC_BUSY || (status == PW_NIC_UNREACHABLE && under_way >= 32))
      break;  // it was dead by then
    demand(status, near.end, "one of many operations");
    if (++under_way == 32) near.kill(kVictim);
  }
  near.kill(kVictim);
  near.end.drain("towards a process that died", wait_ns);
  const uint64_t begun = now_ns();
  unreachable(near, false, wait_ns);
  unreachable(near, true, wait_ns);
  const double took_s = static_cast<double>(now_ns() - begun) / 1e9;
  // The others must not be affected, and memory that the dead peer had imported can be deregistered.
  const Moved moved = everybody_but(near, kVictim, near.share_s);
  near.disconnect(kVictim);
  return format("told {:.1f} s after its {} operations; then {} puts and {} gets of the others", took_s,
                under_way, moved.puts, moved.gets);
}

// The peer dies while it puts and gets here, too.
std::string dies_busy(NearEnd& near) {
  Places places{};
  places.there = {1, 1, 0, 1};
  places.seed = near.random.next();
  places.share_ns = 60'000'000'000;
  pw_nic_key mine{};
  pw_nic_memory* memory = near.end.add(near.arena(0).span(), mine);
  places.key = {mine, near.key(1), near.key(2), near.key(3)};
  for (uint32_t rank = 0; rank < kRanks; ++rank) places.address[rank] = near.address(rank);
  // The peer's cells here change once it is under way. Poison written later could also hide its puts from it,
  // and it would wait for them.
  std::memset(near.arena(0).base(), static_cast<int>(kPoison), near.arena(0).bytes());
  near.tell(kVictim, {CommandKind::traffic, 0, pack(places)});
  const std::byte* theirs = near.arena(0).at(4096 + 3 * 15 * 16384);
  const bool came = near.await([&] {
    for (uint64_t i = 0; i < 15 * 16384; i += 64)
      if (theirs[i] != kPoison) return true;
    return false;
  });
  near.kill(kVictim);
  if (!came) throw Inconclusive{"could not be exercised: no put of the process that was to die has come"};
  near.end.remove(memory);
  const Moved moved = everybody_but(near, kVictim, near.share_s);
  return format("killed while it put and got; then {} puts and {} gets of the others", moved.puts,
                moved.gets);
}

}  // namespace

std::span<const Test> tests_of_death() {
  static constexpr Test kTests[] = {{"a peer that dies", dies, 0.2, true},
                                    {"a peer that dies busy", dies_busy, 0.2, true}};
  return kTests;
}

}  // namespace pw::nic::check
