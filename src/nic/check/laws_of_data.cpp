#include <algorithm>
#include <cstring>
#include <random>

#include "base/clock.h"
#include "base/format.h"
#include "base/relax.h"
#include "nic/check/laws.h"

namespace pw::nic::check {
namespace {

constexpr uint64_t kGuard = NearEnd::kGuard;

void fill_random(std::byte* at, uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(random());
}

/// The sizes worth a look: around words, cache lines, packets, and the stated limits.
std::vector<uint64_t> sizes(NearEnd& near) {
  std::vector<uint64_t> all{1, 3, 8, 63, 64, 65, 1000, 1500, 4096};
  for (const uint64_t size : {near.info().copied, near.info().copied + 1, uint64_t{65537}, near.largest()})
    if (size <= near.largest()) all.push_back(size);
  return all;
}

/// Puts, waits until the last byte is there, and compares all the far memory with what should be in it.
void put_and_compare(NearEnd& near, uint64_t offset, uint64_t bytes, bool copied) {
  near.renew_far_memory();
  fill_random(near.at(0), bytes, bytes * 31 + offset);
  std::byte& last = near.at(0)[bytes - 1];
  if (last == kPoison) last = std::byte{1};
  Counted& done = near.fresh();
  const pw_nic_status status = near.put(offset, near.at(0), copied, bytes, &done);
  const std::string what =
      format("a put of {} bytes at offset {}{}", bytes, offset, copied ? ", copied" : "");
  if (status != PW_NIC_OK) throw Broken{format("{} was refused: {}", what, near.ops().why(near.nic()))};
  near.wait(done, "a put");
  if (done.status != PW_NIC_OK) throw Broken{format("{} ended with status {}", what, int{done.status})};
  Bytes wanted(NearEnd::kRoom + 2 * kGuard, kPoison);
  std::memcpy(wanted.data() + kGuard + offset, near.at(0), bytes);
  Bytes found;
  const uint64_t deadline = deadline_after(kPatience_ns);
  do {
    found = near.far_bytes(0, wanted.size());
  } while (found != wanted && now_ns() < deadline);
  if (found == wanted) return;
  const auto at = std::mismatch(found.begin(), found.end(), wanted.begin()).first - found.begin() -
                  static_cast<std::ptrdiff_t>(kGuard);
  throw Broken{format("after {} the byte at offset {} of the target is wrong", what, at)};
}

std::string puts_arrive(NearEnd& near) {
  for (const uint64_t bytes : sizes(near))
    for (const uint64_t offset : {uint64_t{0}, uint64_t{13}, NearEnd::kRoom - bytes})
      if (offset + bytes <= NearEnd::kRoom) put_and_compare(near, offset, bytes, false);
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{8}, near.info().copied})
    if (bytes <= near.largest()) put_and_compare(near, 40, bytes, true);
  return format("{} sizes to {}, three offsets, nothing beside them touched", sizes(near).size(),
                near.largest());
}

std::string gets_bring(NearEnd& near) {
  for (const uint64_t bytes : sizes(near)) {
    near.renew_far_memory();
    std::memset(near.at(0), 0, NearEnd::kRoom);
    const uint64_t here = bytes + 32 <= NearEnd::kRoom ? 16 : 0;
    Counted& done = near.fresh();
    if (near.get(0, near.at(here), bytes, &done) != PW_NIC_OK)
      throw Broken{format("a get of {} bytes was refused: {}", bytes, near.ops().why(near.nic()))};
    near.wait(done, "a get");
    if (done.status != PW_NIC_OK)
      throw Broken{format("a get of {} bytes ended with status {}", bytes, int{done.status})};
    for (uint64_t i = 0; i < NearEnd::kRoom; ++i)
      if ((*near.at(i) == kPoison) != (i >= here && i < here + bytes))
        throw Broken{format("after the done of a get of {} bytes to offset {} the byte at {} is wrong", bytes,
                            here, i)};
  }
  return format("{} sizes to {}; the bytes are there when done says so", sizes(near).size(), near.largest());
}

std::string done_is_called_once(NearEnd& near) {
  constexpr int kMany = 3000;
  const std::vector<Counted*> dones = near.fresh(kMany);
  bool gets = false;
  for (Counted* done : dones) {
    gets = !gets;
    const pw_nic_status status =
        gets ? near.get(0, near.at(64), 64, done) : near.put(0, near.at(0), false, 64, done);
    if (status != PW_NIC_OK)
      throw Broken{format("one of {} operations was refused: {}", kMany, near.ops().why(near.nic()))};
  }
  for (Counted* done : dones) near.wait(*done, "one of many operations");
  near.progress();
  for (const Counted* done : dones) {
    if (done->calls != 1) throw Broken{format("a done was called {} times", done->calls)};
    if (done->outside) throw Broken{"a done was called from put() or get(); progress() is the place"};
  }
  return format("{} operations, each ended once", kMany);
}

std::string source_is_free(NearEnd& near) {
  near.renew_far_memory();
  for (uint64_t round = 1; round <= 200; ++round) {
    const uint64_t bytes = std::min<uint64_t>(near.largest(), 16384);
    std::memset(near.at(0), static_cast<int>(round), bytes);
    Counted& done = near.fresh();
    if (near.put(0, near.at(0), false, bytes, &done) != PW_NIC_OK) throw Broken{"a put was refused"};
    near.wait(done, "a put");
    std::memset(near.at(0), 0xEE, bytes);
  }
  const uint64_t deadline = deadline_after(100'000'000);
  while (now_ns() < deadline)
    for (const std::byte byte : near.far_bytes(kGuard, 16384))
      if (byte == std::byte{0xEE})
        throw Broken{"what was stored in `data` after the done of its put arrived"};
  return "bytes changed after done did not arrive";
}

std::string nobody_polls(NearEnd& near) {
  near.renew_far_memory();
  const uint64_t bytes = near.largest() / 8 * 8;
  const uint64_t mark = word_of(77);
  std::memset(near.at(0), 0, bytes);
  std::memcpy(near.at(bytes - 8), &mark, 8);
  Counted& done = near.fresh();
  if (near.put(0, near.at(0), false, bytes, &done) != PW_NIC_OK) throw Broken{"a put was refused"};
  Request request;
  request.ask = Ask::await;
  request.offset = bytes - 8;
  request.value = mark;
  if (near.ask(request).value != mark)
    throw Broken{"a put did not arrive within 5 s while neither end called progress()"};
  near.wait(done, "a put");

  auto* here = reinterpret_cast<volatile uint64_t*>(near.at(bytes - 8));
  *here = 0;
  Counted& got = near.fresh();
  if (near.get(0, near.at(0), bytes, &got) != PW_NIC_OK) throw Broken{"a get was refused"};
  const uint64_t deadline = deadline_after(kPatience_ns);
  while (*here != mark && now_ns() < deadline) relax();
  if (*here != mark) throw Broken{"a get brought nothing within 5 s while neither end called progress()"};
  near.wait(got, "a get");
  return "puts and gets move while no end calls progress()";
}

std::string bounds(NearEnd& near) {
  near.renew_far_memory();
  std::memset(near.at(0), 0x11, 4096);
  for (const uint64_t offset : {NearEnd::kRoom, NearEnd::kRoom - 4, ~uint64_t{0} - 8, NearEnd::kRoom * 3}) {
    for (const bool put : {true, false}) {
      Counted& done = near.fresh();
      const pw_nic_status status =
          put ? near.put(offset, near.at(0), false, 8, &done) : near.get(offset, near.at(64), 8, &done);
      if (status == PW_NIC_OK) near.wait(done, "an operation outside of the memory");
      if (!put && status == PW_NIC_OK && done.status == PW_NIC_OK)
        throw Broken{format("a get of 8 bytes at offset {} of {} bytes went well", offset, NearEnd::kRoom)};
    }
  }
  const uint64_t deadline = deadline_after(50'000'000);
  while (now_ns() < deadline)
    for (const std::byte byte : near.far_bytes(kGuard + NearEnd::kRoom - 64, 64 + kGuard))
      if (byte != kPoison) throw Broken{"a put past the end of registered memory stored something"};
  return "nothing outside of registered memory is touched";
}

}  // namespace

std::string memory_withdrawn(NearEnd& near) {
  near.renew_far_memory();
  Request forget;
  forget.ask = Ask::forget;
  near.ask(forget);
  std::memset(near.at(0), 0x22, 64);
  Counted &put = near.fresh(), &got = near.fresh();
  if (near.put(0, near.at(0), false, 64, &put) == PW_NIC_OK) near.wait(put, "a put to withdrawn memory");
  if (near.get(0, near.at(64), 64, &got) == PW_NIC_OK) near.wait(got, "a get from withdrawn memory");
  if (got.calls != 0 && got.status == PW_NIC_OK)
    throw Broken{"a get from memory that its owner had deregistered went well"};
  const uint64_t deadline = deadline_after(100'000'000);
  while (now_ns() < deadline)
    for (const std::byte byte : near.far_bytes(kGuard, 64))
      if (byte != kPoison) throw Broken{"a put was stored in memory that its owner had deregistered"};
  return "gets fail, puts store nothing";
}

std::string peer_dies(NearEnd& near) {
  const uint64_t start = now_ns();
  for (pw_nic_status status = PW_NIC_OK; status != PW_NIC_UNREACHABLE;) {
    if (now_ns() - start > kPatience_ns)
      throw Broken{"5 s after the other process died gets towards it are not PW_NIC_UNREACHABLE"};
    Counted& done = near.fresh();
    status = near.get(0, near.at(0), 64, &done);
    if (status != PW_NIC_OK) continue;
    near.wait(done, "a get from a process that died");
    status = done.status;
  }
  return format("told after {:.1f} s", static_cast<double>(now_ns() - start) / 1e9);
}

std::span<const Law> laws_of_data() {
  static constexpr Law kLaws[] = {
      {"puts", puts_arrive},
      {"gets", gets_bring},
      {"each operation ends once", done_is_called_once},
      {"the source after done", source_is_free},
      {"no polling", nobody_polls},
      {"bounds", bounds},
  };
  return kLaws;
}

}  // namespace pw::nic::check
