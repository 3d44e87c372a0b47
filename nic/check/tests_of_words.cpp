// Tests what others see of a transfer that is under way: words of 8 bytes are whole, and bytes beside the
// transfer stay as their owner stores them.
#include <array>
#include <cstring>

#include "base/relax.h"
#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

using Relaxed = std::atomic_ref<uint64_t>;

/// Number of changes that must be seen as they happen. Context switches alone show few; this many require two
/// threads that run at the same time.
constexpr uint64_t kLive = 1000;

/// The sizes at which each word is checked: those of signals, messages and data.
std::vector<uint64_t> sizes_of_words(NearEnd& near) { return {8, 8, 64, 512, near.largest(65536)}; }

std::string in_puts(NearEnd& near) {
  constexpr uint64_t kBlock = 64, kSources = 4;
  uint64_t seen = 0, puts = 0;
  bool copied = near.info().copied >= 8;
  for (const uint64_t bytes : sizes_of_words(near)) {
    near.renew(1);
    uint64_t* const block = near.arena(1).word(kBlock);
    std::atomic<uint64_t> changes{0}, bad{0}, bad_at{0};
    uint64_t last = 0, at = 0;
    {
      const InBackground watcher([&, words = bytes / 8]() mutable {
        for (int i = 0; i < 64; ++i) {
          const uint64_t word = Relaxed(block[at]).load(std::memory_order_relaxed);
          if (torn(word)) bad_at = at * 8, bad = word;
          if (at == 0 && word != last) changes.fetch_add(1, std::memory_order_relaxed), last = word;
          at = at + 1 < words ? at + 1 : 0;
        }
      });
      std::array<std::atomic<bool>, kSources> busy{};
      const uint64_t stride = NearEnd::kRoom / kSources;
      for (Rounds rounds(near.share_s / 5, 300); rounds.next(changes >= kLive);) {
        const uint64_t v = ++puts, source = v % kSources;
        if (!near.await([&] { return !busy[source].load(); }))
          throw Broken{"the done of a put was not called"};
        std::fill_n(near.word(source * stride), bytes / 8, word_of(v));
        Done* done = nullptr;
        if (!copied) {
          done = &near.end.fresh();
          done->context = &busy[source];
          done->then = [](Done& ended) { *static_cast<std::atomic<bool>*>(ended.context) = false; };
          busy[source] = true;
        }
        const Move move{near.remote(1), kBlock, near.at(source * stride), copied ? nullptr : near.memory(),
                        bytes};
        demand(near.end.put(move, done), near.end, "a put");
        near.end.progress();
        if (bad != 0)
          throw Broken{format(
              "a word of 8 bytes was seen in parts ({:#x}) at offset {} of a put of {} bytes, number {}: "
              "each aligned word must be stored at once",
              bad.load(), kBlock + bad_at.load(), bytes, v)};
      }
      near.end.drain("of puts");
    }
    seen += changes;
    copied = false;
  }
  return format("{} puts of 8 to {} bytes, {} changes seen", puts, near.largest(65536), seen);
}

std::string in_gets(NearEnd& near) {
  constexpr uint64_t kBlock = 64;
  uint64_t gets = 0, fresh = 0;
  near.renew(1);
  for (const uint64_t bytes : sizes_of_words(near)) {
    const uint64_t words = bytes / 8;
    uint64_t* const block = near.arena(1).word(kBlock);
    uint64_t last = 0, v = 0, new_here = 0;
    std::fill_n(block, words, word_of(0));
    const InBackground owner([&]() mutable {
      for (uint64_t i = 0; i < 64; ++i)
        Relaxed(block[v % words]).store(word_of(v), std::memory_order_relaxed), ++v;
    });
    for (Rounds rounds(near.share_s / 5, 300); rounds.next(new_here >= kLive / 2); ++gets) {
      Done& got = near.end.fresh();
      near.must_get(1, kBlock, near.at(4096), bytes, &got);
      near.end.wait(got, "a get");
      for (uint64_t i = 0; i < words; ++i)
        if (torn(near.word(4096)[i]))
          throw Broken{format(
              "a get of {} bytes, number {}, brought half of a word: {:#x} at offset {}, while its owner "
              "stores words of 8 bytes at once; each aligned word must be read at once",
              bytes, gets, near.word(4096)[i], kBlock + i * 8)};
      if (*near.word(4096) != last) ++new_here, last = *near.word(4096);
    }
    fresh += new_here;
  }
  return format("{} gets of 8 to {} bytes, {} of which brought something new", gets, near.largest(65536),
                fresh);
}

/// Bytes beside a transfer, which their owner changes all the time.
class Neighbours {
 public:
  void add(std::byte* at) { all_.push_back({at, static_cast<unsigned char>(*at)}); }
  // The value stored at the last visit must still be there, however long ago that was.
  void turn() {
    Neighbour& neighbour = all_[random_.below(all_.size())];
    std::atomic_ref<unsigned char> byte(*reinterpret_cast<unsigned char*>(neighbour.at));
    if (byte.load(std::memory_order_relaxed) != neighbour.stored) lost.store(neighbour.at);
    neighbour.stored = static_cast<unsigned char>(random_.next());
    byte.store(neighbour.stored, std::memory_order_relaxed);
    for (uint64_t pause = random_.below(30); pause > 0; --pause) relax();
    count.fetch_add(1, std::memory_order_relaxed);
  }
  std::atomic<std::byte*> lost{nullptr};
  std::atomic<uint64_t> count{0};

 private:
  struct Neighbour {
    std::byte* at;
    unsigned char stored;
  };
  Random random_{1};
  std::vector<Neighbour> all_;
};

std::string edges(NearEnd& near) {
  constexpr uint64_t kLanes = 8, kLane = 128, kBegin = 4096, kLong = 32768, kLeast = 50'000, kRounds = 12'000;
  near.renew(1);
  uint64_t operations = 0, changes = 0;
  for (const bool put : {true, false}) {
    std::byte* const memory = put ? near.arena(1).at(kBegin) : near.at(kBegin);
    struct Span {
      uint64_t offset, bytes;
    };
    std::array<Span, kLanes> lane;
    Neighbours neighbours;
    for (uint64_t i = 0; i < kLanes; ++i) {
      lane[i] = {i * kLane + 9 + i % 7, 3 + 5 * i};
      if (i + 2 >= kLanes && near.largest() > kLong)  // because long transfers take their time
        lane[i] = {(i + 3 - kLanes) * 2 * kLong + 5, kLong - 6 - i};
      neighbours.add(memory + lane[i].offset - 1);
      neighbours.add(memory + lane[i].offset + lane[i].bytes);
    }
    uint64_t live = 0;
    const InBackground owner([&] { neighbours.turn(); });
    for (Rounds rounds(near.share_s / 2, kRounds); rounds.next(neighbours.count >= kLeast && live >= kLive);
         ++operations) {
      const uint64_t before = neighbours.count;
      const Span& span = lane[near.random.below(kLanes)];
      Done& done = near.end.fresh();
      if (put)
        near.must_put(1, kBegin + span.offset, near.at(near.random.below(8)), span.bytes, &done);
      else
        near.must_get(1, near.random.below(8), near.at(kBegin + span.offset), span.bytes, &done);
      near.end.progress();
      live += neighbours.count > before + 1;
      if (const std::byte* at = neighbours.lost.load(); at != nullptr)
        throw Broken{format(
            "a byte that its owner had stored at offset {} was undone, beside {} of some bytes: nothing "
            "but the bytes named may be written, not even with what was there before",
            at - memory + static_cast<int64_t>(kBegin), put ? "a put" : "a get")};
    }
    near.end.drain("beside which bytes change");
    changes += neighbours.count;
  }
  return format("{} operations at unaligned edges, beside {} changes by the owner of what lies there",
                operations, changes);
}

}  // namespace

std::span<const Test> tests_of_words() {
  static constexpr Test kTests[] = {{"whole words in puts", in_puts, 0.5},
                                    {"whole words in gets", in_gets, 0.5},
                                    {"bytes beside a transfer", edges, 0.6}};
  return kTests;
}

}  // namespace pw::nic::check
