// Tests of memory that comes and goes: once deregister_memory() has returned, at either end, nothing touches
// it.
#include <algorithm>
#include <array>
#include <cstring>

#include "nic/check/stays.h"
#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

constexpr auto kGone = std::byte{0x3C};  ///< memory is filled with this once it is deregistered
constexpr uint64_t kPiece = 16384;

/// Watches memory in which nothing may change any more, while operations under way end.
void stays(NearEnd& near, const std::byte* memory, uint64_t bytes, const char* whose) {
  constexpr uint64_t kWhile = 3'000'000;  // ns
  const uint64_t until = deadline_after(kWhile);
  bool last = false;
  do {
    last = now_ns() >= until && near.end.under_way() == 0;
    if (near.end.under_way() > 0) near.end.progress();
    for (uint64_t i = 0; i < bytes; i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, memory + i, 8);
      if (word == 0x3C3C3C3C3C3C3C3C) continue;
      throw Broken{format(
          "after deregister_memory() had returned, the word at offset {} of {} changed to {:#x}; wait in it "
          "for what still touches the memory",
          i, whose, word)};
    }
  } while (!last && !(now_ns() > until + 40 * kWhile));
  near.end.drain("to memory that was deregistered");
}

std::string at_the_target(NearEnd& near) {
  constexpr uint64_t kLate = 20'000'000;  // ns
  uint64_t count = 0, refused = 0;
  for (Rounds rounds(near.share_s, 12); rounds.next();) {
    near.renew(1);
    std::memset(near.at(0), static_cast<int>(rounds.done()) | 0x80, NearEnd::kRoom / 2);
    // Puts are under way when the far end is told to deregister; it may do so before the next put begins.
    const uint64_t ask = deadline_after(near.random.between(50'000, 500'000));
    const uint64_t until = ask + near.random.between(200'000, 1'500'000);
    bool requested = false;
    // On a busy machine the far end runs late, and puts must still arrive then.
    for (const Deadline late(kLate);
         !requested || now_ns() < until || !(near.has_answered(1) || late.passed()); ++count) {
      if (!requested && now_ns() >= ask) {
        near.tell(1, {CommandKind::forget, static_cast<uint64_t>(kGone), {}});
        requested = true;
      }
      Done& done = near.end.fresh();
      done.context = &refused;
      done.then = [](Done& ended) {
        if (ended.status != PW_NIC_OK) ++*static_cast<uint64_t*>(ended.context);
      };
      const uint64_t bytes = near.random.one_in(8) ? near.largest(65536) : near.random.between(1, 4096);
      const Move move{near.remote(1), near.random.below(NearEnd::kRoom - 65536), near.at(0), near.memory(),
                      bytes};
      const pw_nic_status status = near.end.try_put(move, &done);
      if (status == PW_NIC_OK) continue;
      if (status == PW_NIC_BUSY)
        near.end.give_back(done);
      else
        ++refused;
      near.end.progress();
    }
    const Reply reply = near.hear(1);
    if (reply.status != PW_NIC_OK) throw Broken{reply.why};
    const Arena& arena = near.arena(1);
    stays(near, arena.base(), arena.bytes(), "the target's memory");
    near.end.drain("to memory that was deregistered");
  }
  // A get from there must not succeed.
  Done& got = near.end.fresh();
  pw_nic_status status = near.get(1, 0, near.at(0), 64, &got);
  if (status == PW_NIC_OK) {
    near.end.wait(got, "a get from memory that was deregistered");
    status = got.status;
  }
  if (status == PW_NIC_OK) throw Broken{"a get from memory that its owner had deregistered went well"};
  return format("{} puts while their target was deregistered, {} of them refused; none was stored after",
                count, refused);
}

std::string at_home(NearEnd& near) {
  near.renew(1);
  std::memset(near.arena(1).at(0), 0x77, NearEnd::kRoom);
  Stays<std::vector<std::byte>> held(8 * kPiece);
  std::vector<std::byte>& room = *held;
  uint64_t count = 0;
  for (Rounds rounds(near.share_s, 12); rounds.next();) {
    pw_nic_span span{};
    span.size = sizeof span;
    span.address = room.data();
    span.bytes = room.size();
    span.descriptor = -1;
    pw_nic_key key{};
    pw_nic_memory* memory = near.end.add(span, key);
    for (uint64_t i = 0; i < 64; ++i) {
      const uint64_t bytes = i % 8 == 0 ? near.largest(kPiece) : near.random.between(1, 512);
      std::byte* here = room.data() + near.random.below(7 * kPiece);
      const Move move{near.remote(1), i * kPiece / 2, here, memory, bytes};
      Done& done = near.end.fresh();
      const pw_nic_status status = i % 4 == 3 ? near.end.try_put(move, &done) : near.end.try_get(move, &done);
      if (status == PW_NIC_BUSY) break;
      demand(status, near.end, "one of many operations");
      ++count;
    }
    near.end.remove(memory);
    std::memset(room.data(), static_cast<int>(kGone), room.size());
    stays(near, room.data(), room.size(), "memory of this end");
  }
  return format("{} puts and gets under way when the memory of this end was deregistered", count);
}

// Registers the same memory again and again: an old key must not reach what was registered later.
std::string old_keys(NearEnd& near) {
  constexpr uint64_t kKept = 4;
  uint64_t count = 0;
  near.renew(1);
  std::array<pw_nic_remote*, kKept> old{};
  for (Rounds rounds(near.share_s, 16); rounds.next();) {
    old[rounds.done() % kKept] = near.end.import(near.peer(1), near.key(1));
    near.renew(1);
    std::memset(near.at(0), 0x21, 64);
    for (pw_nic_remote* remote : old) {
      if (remote == nullptr) continue;
      Done &put = near.end.fresh(), &got = near.end.fresh();
      if (const pw_nic_status status = near.end.put({remote, 128, near.at(0), near.memory(), 64}, &put);
          status == PW_NIC_OK)
        near.end.wait(put, "a put by a key of memory that was deregistered");
      pw_nic_status status = near.end.get({remote, 0, near.at(4096), near.memory(), 64}, &got);
      if (status == PW_NIC_OK) {
        near.end.wait(got, "a get by a key of memory that was deregistered");
        status = got.status;
      }
      if (status == PW_NIC_OK)
        throw Broken{
            "a key went on after its memory was deregistered and registered anew: a get by it went well; "
            "give "
            "each registration a generation"};
      ++count;
    }
    Done& got = near.end.fresh();
    near.must_get(1, 0, near.at(4096), 64, &got);
    near.end.wait(got, "a get");
    demand(got.status, near.end, "a get by a new key of memory that was registered before");
    for (uint64_t i = 128; i < 192; ++i)
      if (*near.arena(1).at(i) != kPoison)
        throw Broken{
            "a put by a key of memory that was deregistered was stored in what was registered since"};
    if (pw_nic_remote*& last = old[(rounds.done() + 1) % kKept]; last != nullptr) {
      near.end.release(last);
      last = nullptr;
    }
  }
  for (pw_nic_remote* remote : old)
    if (remote != nullptr) near.end.release(remote);
  return format("{} uses of keys of what was registered before, all refused", count);
}

}  // namespace

std::span<const Test> tests_of_memory() {
  static constexpr Test kTests[] = {
      {"memory deregistered at the target", at_the_target, 0.6},
      {"memory deregistered here", at_home, 0.3},
      {"keys of earlier registrations", old_keys, 0.2},
  };
  return kTests;
}

}  // namespace pw::nic::check
