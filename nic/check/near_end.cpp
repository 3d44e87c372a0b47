#include "nic/check/near_end.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstring>

namespace pw::nic::check {
namespace {

constexpr int kAnswer_ms = 40'000;  // longer than a far end's watchdog waits, because that reports what hangs

}  // namespace

NearEnd::NearEnd(Stand& stand)
    : end(Plugin::load(stand.options.plugin), stand.job, stand.options.configuration),
      stand_(stand),
      room_(kRoom) {
  pw_nic_span span{};
  span.size = sizeof span;
  span.address = room_.data();
  span.bytes = room_.size();
  span.descriptor = -1;
  pw_nic_key key{};
  memory_ = end.add(span, key);
  ranks_[0].address = end.address();
  ranks_[0].number = info().number;
  for (uint32_t rank = 1; rank < kRanks; ++rank) {
    const Reply opened = ask(rank, {CommandKind::open, 0, {}});
    if (opened.status != PW_NIC_OK) throw Broken{format("{} (in another process)", opened.why)};
    ByteReader reader(opened.bytes, "an address");
    ranks_[rank].address = read_address(reader);
    ranks_[rank].number = static_cast<uint32_t>(opened.value);
    ranks_[rank].peer = end.connect(ranks_[rank].address);
    renew(rank);
  }
}

// ---- far ends ----

void NearEnd::tell(uint32_t rank, const Command& request) const {
  if (!send(stand_.far[rank].get(), request))
    throw Broken{format("the process of far end {} has ended; did the plugin crash or exit there?", rank)};
}

bool NearEnd::answers_within(uint32_t rank, int ms) const {
  pollfd answer{stand_.far[rank].get(), POLLIN, 0};
  return poll(&answer, 1, ms) != 0;
}

Reply NearEnd::hear(uint32_t rank) const {
  if (!answers_within(rank, kAnswer_ms))
    throw Broken{format("far end {} did not answer within {} s: a call of the plugin hangs there", rank,
                        kAnswer_ms / 1000)};
  Reply reply;
  if (!receive(stand_.far[rank].get(), reply))
    throw Broken{format("the process of far end {} has ended; did the plugin crash or exit there?", rank)};
  return reply;
}

Reply NearEnd::ask(uint32_t rank, const Command& request) const {
  tell(rank, request);
  return hear(rank);
}

void NearEnd::renew(uint32_t rank) {
  release(rank);
  std::memset(arena(rank).base(), static_cast<int>(kPoison), arena(rank).bytes());
  const Reply reply = ask(rank, {CommandKind::memory, 0, {}});
  if (reply.status != PW_NIC_OK) throw Broken{reply.why};
  ByteReader reader(reply.bytes, "a key");
  ranks_[rank].key = read_key(reader);
  ranks_[rank].remote = end.import(ranks_[rank].peer, ranks_[rank].key);
}

void NearEnd::release(uint32_t rank) {
  if (ranks_[rank].remote != nullptr) end.release(ranks_[rank].remote);
  ranks_[rank].remote = nullptr;
}

void NearEnd::disconnect(uint32_t rank) {
  release(rank);
  if (ranks_[rank].peer != nullptr) end.disconnect(ranks_[rank].peer);
  ranks_[rank].peer = nullptr;
}

void NearEnd::connect(uint32_t rank) {
  ranks_[rank].peer = end.connect(ranks_[rank].address);
  ranks_[rank].remote = end.import(ranks_[rank].peer, ranks_[rank].key);
}

void NearEnd::kill(uint32_t rank) {
  ::kill(stand_.process[rank], SIGKILL);
  pollfd gone{stand_.far[rank].get(), POLLIN, 0};
  poll(&gone, 1, kAnswer_ms);
  ranks_[rank].dead = true;
}

void NearEnd::close() {
  for (uint32_t rank = 1; rank < kRanks; ++rank) {
    disconnect(rank);
    if (ranks_[rank].dead) continue;
    if (const Reply reply = ask(rank, {CommandKind::close, 0, {}}); reply.status != PW_NIC_OK)
      throw Broken{reply.why};
  }
  end.remove(memory_);
  end.close();
}

// ---- operations ----

pw_nic_status NearEnd::put(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done) {
  return end.put({remote(rank), offset, const_cast<void*>(data), memory_, bytes}, done);
}
pw_nic_status NearEnd::put_copied(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes,
                                  Done* done) {
  return end.put({remote(rank), offset, const_cast<void*>(data), nullptr, bytes}, done);
}
pw_nic_status NearEnd::get(uint32_t rank, uint64_t offset, void* data, uint64_t bytes, Done* done) {
  return end.get({remote(rank), offset, data, memory_, bytes}, done);
}
void NearEnd::must_put(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done) {
  demand(put(rank, offset, data, bytes, done), end, format("a put of {} bytes at offset {}", bytes, offset));
}
void NearEnd::must_get(uint32_t rank, uint64_t offset, void* data, uint64_t bytes, Done* done) {
  demand(get(rank, offset, data, bytes, done), end, format("a get of {} bytes at offset {}", bytes, offset));
}

void NearEnd::arrive(uint32_t rank, uint64_t offset, uint64_t value, const std::string& subject) {
  const auto word = [&] {
    return std::atomic_ref(*arena(rank).word(offset)).load(std::memory_order_acquire);
  };
  if (!await([&] { return word() == value; }))
    throw Broken{format("{} has not arrived: at offset {} of far end {} is {:#x} where {:#x} should be",
                        subject, offset, rank, word(), value)};
}

bool Rounds::next(bool enough_seen) {
  const double took_s = static_cast<double>(now_ns() - begun_) / 1e9;
  const double ran_s = static_cast<double>(thread_time_ns() - cpu_begun_) / 1e9;
  const bool enough = enough_seen && done_ >= least_;
  if (enough && took_s > share_s_) return false;
  if (!enough && ran_s > 10 * share_s_ + 10)
    throw Inconclusive{
        format("could not be exercised: in {:.0f} s and {} rounds {}; is this machine busy? Try again, or "
               "with --minutes",
               took_s, done_,
               done_ < least_ ? format("there were not the {} that are wanted", least_)
                              : "what was to be looked at while it happens was hardly seen to happen")};
  ++done_;
  return true;
}

}  // namespace pw::nic::check
