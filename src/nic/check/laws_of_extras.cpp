#include <poll.h>

#include <cstring>

#include "base/clock.h"
#include "base/format.h"
#include "nic/check/laws.h"

namespace pw::nic::check {
namespace {

constexpr uint64_t kWordRounds = 500;

uint64_t far_word(NearEnd& near, uint64_t offset, uint64_t awaited) {
  Request request;
  request.ask = Ask::await;
  request.offset = offset;
  request.value = awaited;
  return near.ask(request).value;
}

std::string strided(NearEnd& near) {
  if (near.ops().put_strided == nullptr) return "";
  near.renew_far_memory();
  constexpr uint64_t kBlocks = 37, kBytes = 24, kFrom = 40, kTo = 56;
  for (uint64_t i = 0; i < kBlocks * kFrom; ++i) *near.at(i) = static_cast<std::byte>(i % 101);
  Counted& done = near.fresh();
  if (near.post([&] {
        return near.ops().put_strided(near.nic(), near.remote(), 0, kTo, near.at(0), kFrom, near.memory(),
                                      kBlocks, kBytes, &done);
      }) != PW_NIC_OK)
    throw Broken{format("put_strided() refused {} blocks: {}", kBlocks, near.ops().why(near.nic()))};
  near.wait(done, "put_strided()");
  uint64_t last = 0;
  std::memcpy(&last, near.at((kBlocks - 1) * kFrom + kBytes - 8), 8);
  far_word(near, (kBlocks - 1) * kTo + kBytes - 8, last);
  const Bytes found = near.far_bytes(NearEnd::kGuard, kBlocks * kTo);
  for (uint64_t i = 0; i < found.size(); ++i) {
    const bool inside = i % kTo < kBytes;
    if (found[i] != (inside ? *near.at(i / kTo * kFrom + i % kTo) : kPoison))
      throw Broken{format("after put_strided() the byte at offset {} is wrong", i)};
  }
  return format("{} blocks of {} bytes", kBlocks, kBytes);
}

std::string with_word(NearEnd& near) {
  if (near.ops().put_with_word == nullptr) return "";
  const uint64_t large = std::min<uint64_t>(near.largest(), 65536) / 8 * 8;
  for (const uint64_t bytes : {uint64_t{512}, large}) {
    const auto put_both = [&](const void* block, uint64_t word, pw_nic_done* done) {
      return near.post([&] {
        return near.ops().put_with_word(near.nic(), near.remote(), kWatchedBlock, block, near.memory(), bytes,
                                        near.remote(), kWatchedWord, word, done);
      });
    };
    const Reply found = near.watched(bytes, kWordRounds, put_both);
    if (found.why == "torn") throw Broken{"the word of put_with_word() arrived in parts"};
    if (found.value != 0)
      throw Broken{
          format("the word of put_with_word() came before its {} bytes, in round {}", bytes, found.value)};
    if (far_word(near, kWatchedWord, word_of(kWordRounds)) != word_of(kWordRounds))
      throw Broken{"the word of put_with_word() did not come"};
  }
  return format("{} rounds, the word never before its bytes", 2 * kWordRounds);
}

std::string fetch_add(NearEnd& near) {
  if (near.ops().fetch_add == nullptr) return "";
  near.renew_far_memory();
  uint64_t wanted = 0;
  std::memset(&wanted, static_cast<int>(kPoison), 8);
  auto* before = reinterpret_cast<uint64_t*>(near.at(0));
  for (uint64_t v = 1; v <= 1000; ++v) {
    Counted& done = near.fresh();
    if (near.post([&] {
          return near.ops().fetch_add(near.nic(), near.remote(), 16, v, before, near.memory(), &done);
        }) != PW_NIC_OK)
      throw Broken{"fetch_add() was refused"};
    near.wait(done, "fetch_add()");
    if (*before != wanted) throw Broken{format("fetch_add() number {} gave {}, not {}", v, *before, wanted)};
    wanted += v;
  }
  if (far_word(near, 16, wanted) != wanted) throw Broken{"the sum of 1,000 fetch_add() is wrong"};
  return "1,000 of them";
}

std::string event(NearEnd& near) {
  if (near.ops().event == nullptr || near.ops().arm == nullptr) return "";
  const int descriptor = near.ops().event(near.nic());
  if (descriptor < 0) return "event() gives none now";
  near.renew_far_memory();
  for (int round = 0; round < 50; ++round) {
    near.ops().arm(near.nic());
    Counted& done = near.fresh();
    if (near.get(0, near.at(0), 4096, &done) != PW_NIC_OK) throw Broken{"a get was refused"};
    const uint64_t deadline = deadline_after(kPatience_ns);
    while (done.calls == 0 && now_ns() < deadline) {
      pollfd readable{descriptor, POLLIN, 0};
      if (poll(&readable, 1, poll_milliseconds(deadline)) <= 0) break;
      near.progress();
      if (done.calls == 0) near.ops().arm(near.nic());
    }
    if (done.calls == 0)
      throw Broken{"event() was not readable within 5 s though a get had ended after arm()"};
  }
  return "readable when a get has ended";
}

}  // namespace

std::span<const Law> laws_of_extras() {
  static constexpr Law kLaws[] = {{"put_strided", strided},
                                  {"put_with_word", with_word},
                                  {"fetch_add", fetch_add},
                                  {"event and arm", event}};
  return kLaws;
}

}  // namespace pw::nic::check
