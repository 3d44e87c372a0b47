#include <algorithm>
#include <cstring>

#include "nic/check/tests.h"

namespace pw::nic::check {
namespace {

/// The sizes to test: around words, cache lines, pages, packets, and the stated limits.
std::vector<uint64_t> sizes(NearEnd& near) {
  std::vector<uint64_t> all;
  for (const uint64_t size :
       {uint64_t{1}, uint64_t{3}, uint64_t{7}, uint64_t{8}, uint64_t{9}, uint64_t{63}, uint64_t{64},
        uint64_t{65}, uint64_t{1000}, uint64_t{1500}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097},
        near.info().copied, near.info().copied + 1, uint64_t{65537}, near.largest()})
    if (size <= near.largest() && std::ranges::find(all, size) == all.end()) all.push_back(size);
  return all;
}

/// Compares the arena of `rank` with poison that has `bytes` at `offset`. Returns "", or a sentence that says
/// where they differ.
std::string difference(const Arena& arena, uint64_t offset, const std::byte* bytes, uint64_t count) {
  const auto at = static_cast<int64_t>(arena.from() + offset);
  for (int64_t i = 0; i < static_cast<int64_t>(arena.bytes()); ++i) {
    const bool inside = i >= at && i < at + static_cast<int64_t>(count);
    const std::byte wanted = inside ? bytes[i - at] : kPoison;
    if (arena.base()[i] != wanted)
      return format("the byte at offset {} of the target is {:#x} where {:#x} should be",
                    i - static_cast<int64_t>(arena.from()), static_cast<int>(arena.base()[i]),
                    static_cast<int>(wanted));
  }
  return "";
}

void put_and_compare(NearEnd& near, uint32_t rank, uint64_t offset, uint64_t bytes, bool copied) {
  const Arena& arena = near.arena(rank);
  const uint64_t here = near.random.below(std::min<uint64_t>(16, NearEnd::kRoom - bytes + 1));
  std::memset(arena.base(), static_cast<int>(kPoison), arena.bytes());
  fill(near.at(here), bytes, near.random.next());
  const Bytes put(near.at(here), near.at(here) + bytes);
  const std::string operation =
      format("a put of {} bytes at offset {} to far end {}{}", bytes, offset, rank, copied ? ", copied" : "");
  Done& done = near.end.fresh();
  demand(copied ? near.put_copied(rank, offset, near.at(here), bytes, &done)
                : near.put(rank, offset, near.at(here), bytes, &done),
         near.end, operation);
  if (copied) std::memset(near.at(here), 0xEE, bytes);
  near.end.wait(done, "a put");
  demand(done.status, near.end, operation);
  if (near.await([&] {
        return std::memcmp(arena.at(offset), put.data(), bytes) == 0 &&
               difference(arena, offset, put.data(), bytes).empty();
      }))
    return;
  throw Broken{format("after {} {}", operation, difference(arena, offset, put.data(), bytes))};
}

std::string puts_arrive(NearEnd& near) {
  uint64_t count = 0;
  for (uint32_t rank = 1; rank < kRanks; ++rank) near.renew(rank);
  for (const uint64_t bytes : sizes(near))
    for (const uint64_t offset : {uint64_t{0}, uint64_t{13}, NearEnd::kRoom - bytes})
      if (offset + bytes <= NearEnd::kRoom) {
        put_and_compare(near, 1 + static_cast<uint32_t>(count % kFars), offset, bytes, false);
        ++count;
      }
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{8}, near.info().copied})
    if (bytes <= near.largest()) put_and_compare(near, 1, 40, bytes, true);
  return format(
      "{} sizes to {}, at both ends of memory with a descriptor and without; nothing beside them touched",
      sizes(near).size(), near.largest());
}

std::string gets_bring(NearEnd& near) {
  for (uint32_t rank = 1; rank < kRanks; ++rank) near.renew(rank);
  uint64_t count = 0;
  for (const uint64_t bytes : sizes(near))
    for (const uint64_t offset : {uint64_t{0}, uint64_t{5}, NearEnd::kRoom - bytes}) {
      if (offset + bytes > NearEnd::kRoom) continue;
      const uint32_t rank = 1 + static_cast<uint32_t>(count++ % kFars);
      const uint64_t here = near.random.below(std::min<uint64_t>(16, NearEnd::kRoom - bytes + 1));
      fill(near.arena(rank).at(offset), bytes, near.random.next());
      std::memset(near.at(0), 0, NearEnd::kRoom);
      const std::string operation =
          format("a get of {} bytes at offset {} of far end {}", bytes, offset, rank);
      Done& done = near.end.fresh();
      demand(near.get(rank, offset, near.at(here), bytes, &done), near.end, operation);
      near.end.wait(done, "a get");
      demand(done.status, near.end, operation);
      for (uint64_t i = 0; i < NearEnd::kRoom; ++i) {
        const bool inside = i >= here && i < here + bytes;
        const std::byte wanted = inside ? *near.arena(rank).at(offset + i - here) : std::byte{0};
        if (*near.at(i) != wanted)
          throw Broken{
              format("after the done of {} to offset {} the byte at {} is {:#x} where {:#x} should be",
                     operation, here, i, static_cast<int>(*near.at(i)), static_cast<int>(wanted))};
      }
    }
  return format("{} gets, {} sizes to {}; the bytes are there when done says so", count, sizes(near).size(),
                near.largest());
}

// Tests offsets and lengths outside the memory, including values near the limit of 64 bits.
std::string bounds(NearEnd& near) {
  near.renew(1);
  const Arena& arena = near.arena(1);
  std::memset(near.at(0), 0x11, 4096);
  constexpr uint64_t kEnd = NearEnd::kRoom;
  constexpr std::pair<uint64_t, uint64_t> kOutside[] = {{kEnd, 8},
                                                        {kEnd - 4, 8},
                                                        {kEnd - 7, 8},
                                                        {kEnd * 3, 8},
                                                        {~uint64_t{0} - 8, 8},
                                                        {~uint64_t{0} - 7, 16},
                                                        {uint64_t{1} << 32, 8},
                                                        {kEnd - 4096, 4097},
                                                        {uint64_t{1} << 63, 8}};
  uint64_t refused = 0;
  for (const auto& [offset, bytes] : kOutside)
    for (const bool put : {true, false}) {
      if (bytes > near.largest()) continue;
      Done& done = near.end.fresh();
      pw_nic_status status = put ? near.put(1, offset, near.at(0), bytes, &done)
                                 : near.get(1, offset, near.at(8192), bytes, &done);
      if (status == PW_NIC_OK) {
        near.end.wait(done, "an operation outside of the memory");
        status = done.status;
      }
      if (status != PW_NIC_OK) ++refused;
      if (!put && status == PW_NIC_OK)
        throw Broken{format("a get of {} bytes at offset {} of {} bytes went well", bytes, offset, kEnd)};
    }
  // If a get brings too many bytes, it has done so within the time of another get.
  Done& got = near.end.fresh();
  near.must_get(1, 0, near.at(0), 8, &got);
  near.end.wait(got, "a get");
  for (const uint64_t until = deadline_after(50'000'000); now_ns() < until;) near.end.progress();
  for (uint64_t i = 0; i < arena.bytes(); ++i)
    if (arena.base()[i] != kPoison)
      throw Broken{format("a put outside of registered memory stored a byte at offset {}",
                          static_cast<int64_t>(i) - static_cast<int64_t>(arena.from()))};
  return format("{} operations past the end, {} of them refused; nothing outside is touched",
                2 * std::size(kOutside), refused);
}

std::string huge(NearEnd& near) {
  const Arena& memory = near.stand().huge;
  if (!memory.there())
    throw Inconclusive{
        "could not be exercised: this system gives no 4 GiB of address space with no memory behind it"};
  const Reply reply = near.ask(1, {CommandKind::huge, 0, {}});
  if (reply.status != PW_NIC_OK) throw Absent{format("no memory of more than 4 GiB is taken: {}", reply.why)};
  ByteReader reader(reply.bytes, "a key");
  pw_nic_remote* remote = near.end.import(near.peer(1), read_key(reader));
  constexpr uint64_t k4GiB = uint64_t{1} << 32;
  for (const uint64_t offset : {k4GiB - 8, k4GiB - 3, k4GiB, k4GiB + 4096, Stand::kHugeRoom - 64}) {
    fill(near.at(0), 64, offset);
    const std::string operation = format("a put of 64 bytes at offset {} of {}", offset, memory.room());
    Done& put = near.end.fresh();
    demand(near.end.put({remote, offset, near.at(0), near.memory(), 64}, &put), near.end, operation);
    near.end.wait(put, "a put");
    if (!near.await([&] { return std::memcmp(memory.at(offset), near.at(0), 64) == 0; }))
      throw Broken{format("{} has not arrived; {}", operation,
                          std::memcmp(memory.at(offset % k4GiB), near.at(0), 32) == 0
                              ? "it went to that offset modulo 4 GiB: are offsets 64 bits wide?"
                              : "are offsets 64 bits wide?")};
    std::memset(near.at(4096), 0, 64);
    Done& got = near.end.fresh();
    demand(near.end.get({remote, offset, near.at(4096), near.memory(), 64}, &got), near.end, "a get there");
    near.end.wait(got, "a get");
    if (std::memcmp(near.at(4096), near.at(0), 64) != 0)
      throw Broken{format("a get of 64 bytes at offset {} of {} brought others: are offsets 64 bits wide?",
                          offset, memory.room())};
  }
  near.end.release(remote);
  return format("puts and gets around 4 GiB of {} bytes", memory.room());
}

}  // namespace

std::span<const Test> tests_of_data() {
  static constexpr Test kTests[] = {
      {"puts", puts_arrive}, {"gets", gets_bring}, {"bounds", bounds}, {"offsets above 4 GiB", huge}};
  return kTests;
}

}  // namespace pw::nic::check
