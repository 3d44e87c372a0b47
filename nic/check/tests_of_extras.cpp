// Tests of the optional entries.
#include <poll.h>

#include <algorithm>
#include <cstring>

#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

std::string strided(NearEnd& near) {
  if (near.end.ops().put_strided == nullptr) throw Absent{"NULL"};
  constexpr uint64_t kFrom = 40, kTo = 56;
  uint64_t total = 0;
  for (Rounds rounds(near.share_s, 8); rounds.next();) {
    const uint64_t blocks = near.random.between(1, 200), bytes = near.random.between(1, kFrom),
                   offset = near.random.below(64);
    near.renew(1);
    fill(near.at(0), blocks * kFrom, near.random.next());
    Done& done = near.end.fresh();
    demand(near.end.insist([&] {
      return near.end.attempt("put_strided", &done, [&] {
        return near.end.ops().put_strided(near.end.nic(), near.remote(1), offset, kTo, near.at(0), kFrom,
                                          near.memory(), blocks, bytes, &done);
      });
    }),
           near.end, format("put_strided() of {} blocks of {} bytes", blocks, bytes));
    near.end.wait(done, "put_strided()");
    Bytes wanted(offset + blocks * kTo, kPoison);
    for (uint64_t i = 0; i < blocks; ++i) std::memcpy(&wanted[offset + i * kTo], near.at(i * kFrom), bytes);
    const std::byte* there = near.arena(1).at(0);
    if (!near.await([&] { return std::memcmp(there, wanted.data(), wanted.size()) == 0; })) {
      const auto at = std::mismatch(wanted.begin(), wanted.end(), there).first - wanted.begin();
      throw Broken{
          format("after put_strided() of {} blocks of {} bytes, {} apart, the byte at offset {} is wrong",
                 blocks, bytes, kTo, at)};
    }
    total += blocks;
  }
  return format("{} blocks of 1 to {} bytes", total, kFrom);
}

std::string with_word(NearEnd& near) {
  if (near.end.ops().put_with_word == nullptr) throw Absent{"NULL"};
  constexpr uint64_t kWord = 0, kBlock = 64;
  uint64_t total = 0;
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{520}, near.largest(65536)}) {
    near.renew(1);
    std::atomic<uint64_t> seen{0}, early{0}, parts{0};
    uint64_t last = 0;
    const InBackground watcher([&] {
      const auto at = [&](uint64_t offset) {
        return std::atomic_ref(*near.arena(1).word(offset)).load(std::memory_order_acquire);
      };
      const uint64_t word = at(kWord);
      if (torn(word)) parts = word;
      if (torn(word) || word == last || static_cast<uint32_t>(word) == 0xA5A5A5A5) return;
      last = word;
      if (at(kBlock + bytes - 8) < word || at(kBlock) < word) early = word & 0xffffffff;
      seen.fetch_add(1, std::memory_order_relaxed);
    });
    uint64_t v = 0;
    for (Rounds rounds(near.share_s / 3, 100); rounds.next(seen >= 30);) {
      const uint64_t word = word_of(++v);
      std::fill_n(near.word(0), bytes / 8, word);
      Done& done = near.end.fresh();
      demand(near.end.insist([&] {
        return near.end.attempt("put_with_word", &done, [&] {
          return near.end.ops().put_with_word(near.end.nic(), near.remote(1), kBlock, near.at(0),
                                              near.memory(), bytes, near.remote(1), kWord, word, &done);
        });
      }),
             near.end, "put_with_word()");
      near.arrive(1, kWord, word, "the word of put_with_word()");
      near.end.wait(done, "put_with_word()");
      if (parts != 0) throw Broken{"the word of put_with_word() arrived in parts"};
      if (early != 0)
        throw Broken{
            format("the word of put_with_word() came before its {} bytes, in round {}", bytes, early.load())};
    }
    total += v;
  }
  return format("{} rounds, the word never before its bytes", total);
}

std::string fetch_add(NearEnd& near) {
  if (near.end.ops().fetch_add == nullptr) throw Absent{"NULL"};
  near.renew(1);
  uint64_t wanted = *near.arena(1).word(16), v = 0;
  for (Rounds rounds(near.share_s, 300); rounds.next();) {
    Done& done = near.end.fresh();
    demand(near.end.insist([&] {
      return near.end.attempt("fetch_add", &done, [&] {
        return near.end.ops().fetch_add(near.end.nic(), near.remote(1), 16, v, near.word(0), near.memory(),
                                        &done);
      });
    }),
           near.end, "fetch_add()");
    near.end.wait(done, "fetch_add()");
    demand(done.status, near.end, "fetch_add()");
    if (*near.word(0) != wanted)
      throw Broken{format("fetch_add() number {} gave {}, not {}", v, *near.word(0), wanted)};
    wanted += v++;
  }
  near.arrive(1, 16, wanted, format("the sum of {} fetch_add()", v));
  return format("{} of them; several at once: see random traffic", v);
}

std::string events(NearEnd& near) {
  const pw_nic_ops& ops = near.end.ops();
  if (ops.event == nullptr || ops.arm == nullptr) throw Absent{"NULL"};
  const int descriptor = ops.event(near.end.nic());
  if (descriptor < 0) throw Absent{"event() gives none now"};
  near.renew(1);
  uint64_t count = 0;
  for (Rounds rounds(near.share_s, 50); rounds.next(); ++count) {
    ops.arm(near.end.nic());
    Done& done = near.end.fresh();
    near.must_get(1, 0, near.at(0), 4096, &done);
    // Time asleep says nothing about how busy the machine is; the evidence is an operation that ended without
    // an event.
    const auto wait_ms = static_cast<int>(longest_wait_ns / 1'000'000);
    while (done.under_way) {
      pollfd readable{descriptor, POLLIN, 0};
      const bool readable_in_time = poll(&readable, 1, wait_ms) > 0 || poll(&readable, 1, 0) > 0;
      near.end.progress();
      if (!done.under_way && !readable_in_time)
        throw Broken{format("event() was not readable within {:.1f} s, though a get had ended after arm()",
                            static_cast<double>(longest_wait_ns) / 1e9)};
      if (done.under_way && !readable_in_time) near.end.wait(done, "a get");
      if (done.under_way) ops.arm(near.end.nic());
    }
  }
  return format("readable when a get had ended, {} times", count);
}

}  // namespace

std::span<const Test> tests_of_extras() {
  static constexpr Test kTests[] = {{"put_strided", strided, 0.1},
                                    {"put_with_word", with_word, 0.3},
                                    {"fetch_add", fetch_add, 0.1},
                                    {"event and arm", events, 0.1}};
  return kTests;
}

}  // namespace pw::nic::check
