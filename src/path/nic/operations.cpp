// What an engine is asked to do: transfers, words, and waiting for them.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "path/nic/peer.h"
#include "team/wait.h"

namespace pw::nic {

/// Whoever looks leaves the card's thread alone; who sleeps has it look.
template <typename Done>
pw_status Engine::wait_for(int rank, uint64_t deadline_ns, const char* what, Done&& done) {
  Polled* const me[] = {this};
  std::optional<Polling> polling;
  if (!waiting_.economy()) polling.emplace(me);
  struct Asleep {
    std::atomic<int>& count;
    int mine = 0;
    ~Asleep() { count.fetch_sub(mine); }
  } asleep{sleepers_};
  const auto closed = [&] { return closed_.load(std::memory_order_relaxed) != 0; };
  bool happened = false;
  const pw_status status = wait_until(
      waiting_, {team_, rank, deadline_ns, what},
      [&] {
        if (polling) polling->turn();
        happened = done();
        return happened || closed();
      },
      [&] {
        asleep.mine = 1;
        sleepers_.fetch_add(1);
        rouse();
        return Wakes::perhaps;
      });
  if (status != PW_OK || happened) return status;
  return pw::fail(PW_CLOSED, format("peerway: this context was closed while waiting for {}", what));
}

// The card may know of a death before the team does, which has more to say of it.
pw_status Engine::failure(Lock& lock, int rank, pw_nic_status status) {
  constexpr uint64_t kWhile = 200'000'000;  // ns
  const std::string why = endpoint_.why(status);
  lock.unlock();
  const uint64_t deadline = deadline_after(status == PW_NIC_UNREACHABLE ? kWhile : 0);
  while (!team_.lost(rank) && now_ns() < deadline) sched_yield();
  if (team_.lost(rank)) return pw::fail(PW_PEER_LOST, "peerway: " + team_.describe_loss(rank));
  if (status == PW_NIC_UNREACHABLE)
    return pw::fail(PW_PEER_LOST,
                    format("peerway: rank {} is out of reach of the card {}: {}", rank, name(), why));
  if (status == PW_NIC_REFUSED)
    return pw::fail(PW_STALE_KEY, format("peerway: the card {} finds memory of rank {} closed ({}); ask that "
                                         "rank for a new key",
                                         name(), rank, why));
  return pw::fail(PW_SYSTEM,
                  format("peerway: a transfer of the card {} with rank {} failed: {}", name(), rank, why));
}

/// Calls `start` with the lock until the card has room for what it starts.
template <typename Start>
pw_status Engine::start(int rank, Start&& start) {
  pw_nic_status status = PW_NIC_BUSY;
  const auto attempt = [&] {
    Lock lock(mutex_);
    Peer& to = peer(rank);
    status = start(to);
    if (status != PW_NIC_BUSY) ++to.started;
    if (status == PW_NIC_BUSY) {
      endpoint_.progress();
      return false;
    }
    if (endpoint_.unfinished() && asleep_.load(std::memory_order_relaxed)) rouse();
    return true;
  };
  if (!attempt())
    if (const pw_status waited = wait_for(rank, PW_FOREVER, "room for another transfer of a card", attempt);
        waited != PW_OK)
      return waited;
  if (status == PW_NIC_OK) return PW_OK;
  Lock lock(mutex_);
  return failure(lock, rank, status);
}

pw_status Engine::move(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data,
                       RegionMemory& local, uint64_t bytes, const Word* word) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t next = std::min(bytes - done, endpoint_.info().largest);
    const bool last = done + next == bytes;
    const pw_status status = start(rank, [&](Peer& peer) {
      Tally& tally = op == Op::put ? peer.puts : peer.gets;
      Stream& stream = *peer.stream;
      const pw_nic_status started =
          op == Op::get ? stream.get(*remote.memory, offset + done, data + done, *local.memory, next, &tally)
          : word != nullptr && last
              ? stream.put_word(*remote.memory, offset + done, data + done, local.memory.get(), next, *word,
                                &tally)
              : stream.put(*remote.memory, offset + done, data + done, local.memory.get(), next, &tally);
      if (started == PW_NIC_OK) tally.add(1);
      return started;
    });
    if (status != PW_OK) return status;
    done += next;
  }
  return PW_OK;
}

pw_status Engine::put_strided(int rank, RankMemory& remote, uint64_t offset, const std::byte* data,
                              RegionMemory& local, const Blocks& blocks) {
  const uint64_t at_once = std::max<uint64_t>(endpoint_.info().largest / blocks.bytes, 1);
  for (uint64_t done = 0; done < blocks.count;) {
    Blocks next = blocks;
    next.count = std::min(at_once, blocks.count - done);
    const pw_status status = start(rank, [&](Peer& peer) {
      const pw_nic_status started =
          peer.stream->put_strided(*remote.memory, offset + done * blocks.to_stride,
                                   data + done * blocks.from_stride, *local.memory, next, &peer.puts);
      if (started == PW_NIC_OK) peer.puts.add(1);
      return started;
    });
    if (status != PW_OK) return status;
    done += next.count;
  }
  return PW_OK;
}

pw_status Engine::put_word(int rank, const Word& word) {
  return start(rank, [&](Peer& peer) { return peer.stream->word(word); });
}

pw_status Engine::get_word(int rank, RankMemory& remote, uint64_t offset, uint64_t& value) {
  pw_status status = start(rank, [&](Peer& peer) {
    const pw_nic_status started =
        peer.stream->get(*remote.memory, offset, scratch_word_, *scratch_, sizeof value, &peer.gets);
    if (started == PW_NIC_OK) peer.gets.add(1);
    return started;
  });
  if (status == PW_OK) status = flush(rank, PW_FOREVER);
  value = scratch_word_[0];
  return status;
}

pw_status Engine::flush(int rank, uint64_t deadline_ns) {
  Peer* to = nullptr;
  uint64_t until = 0;
  {
    Lock lock(mutex_);
    to = peers_[static_cast<size_t>(rank)].get();
    if (to == nullptr || to->complete == to->started) return PW_OK;
    until = to->started;  // what is started from here on is another flush's
  }
  const auto fence = std::make_shared<Fence>();
  fence->call = [](pw_nic_done* done, pw_nic_status with) {
    auto* mine = static_cast<Fence*>(done);
    const auto held = std::move(mine->self);
    mine->status = with;
    mine->over.store(true, std::memory_order_release);
  };
  bool begun = false;
  pw_nic_status refused = PW_NIC_OK;
  // A marker's get is behind all gets; where the peer answers instead, they are waited for as well.
  const auto done = [&] {
    if (!begun) {
      Lock lock(mutex_);
      refused = to->stream->flush(fence.get());
      if (refused == PW_NIC_BUSY) {
        endpoint_.progress();
        return false;
      }
      if (refused != PW_NIC_OK) return true;
      fence->self = fence;
      begun = true;
      endpoint_.progress();  // it may be over at once
    }
    return fence->over.load(std::memory_order_acquire) &&
           (fence->status != PW_NIC_OK || to->gets.under_way.load(std::memory_order_acquire) == 0);
  };
  const pw_status waited = wait_for(rank, deadline_ns, "transfers of a card to complete", done);
  Lock lock(mutex_);
  pw_nic_status failed = refused != PW_NIC_OK ? refused : fence->status;
  if (waited != PW_OK) return waited;
  if (failed == PW_NIC_OK) to->complete = std::max(to->complete, until);
  for (Tally* tally : {&to->puts, &to->gets}) {  // told once, even where the flush has told it
    const pw_nic_status of = std::exchange(tally->failed, PW_NIC_OK);
    if (failed == PW_NIC_OK) failed = of;
  }
  return failed == PW_NIC_OK ? PW_OK : failure(lock, rank, failed);
}

}  // namespace pw::nic
