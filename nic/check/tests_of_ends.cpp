// Tests of how operations end: each once, from progress(), also if their peer, key, memory or endpoint goes
// away.
#include <algorithm>
#include <array>
#include <cstring>

#include "nic/check/stays.h"
#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

std::string once(NearEnd& near) {
  constexpr uint64_t kLeast = 3000;
  near.renew(1);
  uint64_t count = 0, deepest = 0;
  for (Rounds rounds(near.share_s, kLeast); rounds.next(); ++count) {
    Done* done = near.random.one_in(8) ? nullptr : &near.end.fresh();  // `done` may be null
    if (count % 2 == 0)
      near.must_get(1, 0, near.at(64), 64, done);
    else
      near.must_put(1, 0, near.at(0), 64, done);
    deepest = std::max(deepest, near.end.under_way());
    if (near.random.one_in(256)) near.end.drain("of many");
  }
  near.end.drain("of many");
  for (int i = 0; i < 3; ++i) near.end.progress();
  return format("{} operations, {} under way; with and without a done", count, deepest);
}

// Changes the source of a put in its `done`, or at once if it was copied; none of the changes may arrive.
std::string source_is_free(NearEnd& near) {
  constexpr uint64_t kBatch = 24, kPiece = 32768;
  static_assert(kBatch * kPiece <= NearEnd::kRoom);
  near.renew(1);
  uint64_t count = 0;
  for (Rounds rounds(near.share_s, 20); rounds.next();) {
    struct Source {
      std::byte* at;
      uint64_t bytes;
    };
    std::array<Source, kBatch> sources;
    std::array<Bytes, kBatch> put;
    for (uint64_t i = 0; i < kBatch; ++i) {
      const bool copied = near.random.one_in(3);
      const uint64_t bytes =
          near.random.between(1, copied ? std::min(near.info().copied, kPiece) : near.largest(kPiece));
      sources[i] = {near.at(i * kPiece), bytes};
      fill(sources[i].at, bytes, near.random.next());
      put[i].assign(sources[i].at, sources[i].at + bytes);
      if (copied) {
        demand(near.put_copied(1, i * kPiece, sources[i].at, bytes, nullptr), near.end,
               "a put that is copied");
        std::memset(sources[i].at, 0xEE, bytes);
        continue;
      }
      Done& done = near.end.fresh();
      done.context = &sources[i];
      done.then = [](Done& ended) {
        const auto* source = static_cast<Source*>(ended.context);
        std::memset(source->at, 0xEE, source->bytes);
      };
      near.must_put(1, i * kPiece, sources[i].at, bytes, &done);
    }
    near.end.drain("(puts)");
    for (uint64_t i = 0; i < kBatch; ++i, ++count) {
      const std::byte* there = near.arena(1).at(i * kPiece);
      if (near.await([&] { return std::memcmp(there, put[i].data(), put[i].size()) == 0; })) continue;
      const auto at =
          static_cast<uint64_t>(std::mismatch(put[i].begin(), put[i].end(), there).first - put[i].begin());
      throw Broken{format("{}: of a put of {} bytes the byte at {} is {:#x} where {:#x} was put",
                          there[at] == std::byte{0xEE}
                              ? "what was stored in `data` after the done of its put arrived"
                              : "a put has not arrived",
                          put[i].size(), at, static_cast<int>(there[at]), static_cast<int>(put[i][at]))};
    }
  }
  return format("{} puts whose source was changed in their done", count);
}

std::string nobody_polls(NearEnd& near) {
  constexpr uint64_t kMany = 8;
  near.renew(1);
  near.renew(2);
  const uint64_t bytes = near.largest() / 8 * 8, mark = word_of(77);
  const auto posted = [&](const char* operation, pw_nic_status status) {
    if (status != PW_NIC_BUSY) demand(status, near.end, operation);
    return status == PW_NIC_OK;
  };
  // One large put, and small ones after it, as long as there is room.
  *near.word(bytes - 8) = mark;
  uint64_t puts = 0;
  near.must_put(1, 0, near.at(0), bytes, &near.end.fresh());
  const auto small = [&](uint64_t i) { return i * 64; };
  for (; puts < kMany; ++puts) {
    const Move move{near.remote(2), small(puts), const_cast<uint64_t*>(&mark), nullptr, 8};
    if (!posted("a put", near.end.try_put(move, nullptr))) break;
  }
  const auto silent = [&](uint32_t rank, uint64_t offset) {
    return near.await([&] { return std::atomic_ref(*near.arena(rank).word(offset)).load() == mark; }, false);
  };
  const bool came = silent(1, bytes - 8) && (puts == 0 || silent(2, small(puts - 1)));
  if (!came)
    throw Broken{format(
        "a put of {} bytes, or one of {} small ones behind it, did not arrive while neither end called "
        "progress(), within {:.1f} s of looking; what was posted moves by itself",
        bytes, puts, static_cast<double>(longest_wait_ns) / 1e9)};
  near.end.drain("(puts)");
  auto here = std::atomic_ref(*near.word(bytes - 8));
  here = 0;
  near.must_get(1, 0, near.at(0), bytes, &near.end.fresh());
  if (!near.await([&] { return here.load() == mark; }, false))
    throw Broken{
        format("a get of {} bytes was not answered while neither end called progress(), within {:.1f} s of "
               "looking",
               bytes, static_cast<double>(longest_wait_ns) / 1e9)};
  near.end.drain("(gets)");
  return format("puts and a get of up to {} bytes moved while nobody called", bytes);
}

// Operations that fail must release the room that they had.
std::string failures_leave_room(NearEnd& near) {
  constexpr uint64_t kLeast = 2000;
  near.renew(1);
  uint64_t refused = 0, failed = 0;
  const uint64_t many =
      std::min<uint64_t>(std::max<uint64_t>(kLeast, 2 * uint64_t{near.info().in_flight}), 300'000);
  const auto count = [&](pw_nic_status status) { ++(status == PW_NIC_OK ? failed : refused); };
  for (uint64_t i = 0; i < many; ++i) {
    count(near.get(1, NearEnd::kRoom + 64, near.at(0), 8, &near.end.fresh()));
    count(near.put(1, NearEnd::kRoom + 64, near.at(0), 8, &near.end.fresh()));
  }
  near.end.drain("outside of the memory");
  near.ask(1, {CommandKind::forget, static_cast<uint64_t>(kPoison), {}});
  for (uint64_t i = 0; i < many; ++i) {
    count(near.get(1, 0, near.at(0), 8, &near.end.fresh()));
    count(near.put(1, 0, near.at(0), 8, &near.end.fresh()));
  }
  near.end.drain("to memory that was deregistered");
  near.renew(1);
  for (int i = 0; i < 512; ++i) near.must_get(1, 0, near.at(0), 8, &near.end.fresh());
  near.end.drain("after others that failed");
  return format("{} operations refused and {} ended; there is room after them", refused, failed);
}

/// Posts puts and gets towards `rank` until there is no room or many are under way.
uint64_t crowd(NearEnd& near, End& end, pw_nic_remote* remote, std::byte* data, pw_nic_memory* memory) {
  constexpr uint64_t kMany = 96;
  uint64_t posted = 0;
  for (; posted < kMany; ++posted) {
    const uint64_t bytes = posted % 4 == 0 ? near.largest(65536) : 64;
    const Move move{remote, 0, data, memory, bytes};
    Done& done = end.fresh();
    const pw_nic_status status = posted % 2 == 0 ? end.try_put(move, &done) : end.try_get(move, &done);
    if (status == PW_NIC_BUSY) break;
    demand(status, end, "one of many operations");
  }
  return posted;
}

std::string released(NearEnd& near) {
  constexpr int kRounds = 30;
  uint64_t count = 0;
  near.renew(2);
  for (int i = 0; i < kRounds; ++i) {
    count += crowd(near, near.end, near.remote(2), near.at(0), near.memory());
    near.release(2);
    near.end.drain("whose key was released");
    near.disconnect(2);
    near.connect(2);
  }
  return format("{} operations under way when their key was released, all ended", count);
}

std::string disconnected(NearEnd& near) {
  constexpr int kRounds = 30;
  uint64_t count = 0;
  near.renew(2);
  for (int i = 0; i < kRounds; ++i) {
    count += crowd(near, near.end, near.remote(2), near.at(0), near.memory());
    near.disconnect(2);
    near.end.drain("whose peer was disconnected");
    near.connect(2);
  }
  return format("{} operations under way when their peer was disconnected, all ended", count);
}

std::string closed(NearEnd& near) {
  constexpr int kRounds = 10;
  uint64_t count = 0;
  near.renew(2);
  for (int i = 0; i < kRounds; ++i) {
    Stays<std::vector<std::byte>> held(near.largest(65536));
    std::vector<std::byte>& room = *held;
    pw_nic_span span{};
    span.size = sizeof span;
    span.address = room.data();
    span.bytes = room.size();
    span.descriptor = -1;
    pw_nic_key key{};
    Stays<End> open(Plugin::load(near.stand().options.plugin), near.stand().job,
                    near.stand().options.configuration);
    End& end = *open;
    pw_nic_memory* memory = end.add(span, key);
    pw_nic_peer* peer = end.connect(near.address(2));
    pw_nic_remote* remote = end.import(peer, near.key(2));
    count += crowd(near, end, remote, room.data(), memory);
    end.release(remote);
    end.disconnect(peer);
    end.remove(memory);
    end.close();
    if (end.under_way() > 0)
      throw Broken{format(
          "close() returned, and the done of {} operations was not called; those that are under way end "
          "in it",
          end.under_way())};
  }
  return format("{} operations under way at close, all ended", count);
}

}  // namespace

std::span<const Test> tests_of_ends() {
  static constexpr Test kTests[] = {
      {"each operation ends once", once, 0.3},
      {"the source after done", source_is_free, 0.4},
      {"no polling", nobody_polls},
      {"room after failures", failures_leave_room},
      {"a key released early", released},
      {"a peer disconnected early", disconnected},
      {"closed early", closed},
  };
  return kTests;
}

}  // namespace pw::nic::check
