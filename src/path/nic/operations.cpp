// What an engine is asked to do: transfers, words, and waiting for them.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "path/nic/peer.h"

namespace pw::nic {

template <typename Done>
pw_status Engine::wait_for(int rank, uint64_t deadline_ns, const char* what, Done&& done) {
  const auto closed = [&] { return closed_.load(std::memory_order_relaxed) != 0; };
  bool happened = false;
  const pw_status status = progress_.wait(
      {team_, rank, deadline_ns, what}, this,
      [&] {
        happened = done();
        return happened || closed();
      },
      Wakes::perhaps);
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
    idle_.store(0, std::memory_order_relaxed);
    if (endpoint_.unfinished()) progress_.wake_if_asleep();
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

std::shared_ptr<const uint64_t> Engine::get_word(int rank, RankMemory& remote, uint64_t offset) {
  const pw_status status = start(rank, [&](Peer& peer) {
    const pw_nic_status started =
        peer.stream->get(*remote.memory, offset, scratch_word_, *scratch_, sizeof *scratch_word_, &peer.gets);
    if (started == PW_NIC_OK) peer.gets.add(1);
    return started;
  });
  if (status != PW_OK) throw Error(status, last_error_message());
  return {shared_from_this(), scratch_word_};
}

// ---- marks ----

Mark Engine::mark(int rank) {
  const Lock lock(mutex_);
  Peer* peer = peers_[static_cast<size_t>(rank)].get();
  if (peer == nullptr || (peer->complete == peer->started && !peer->has_failed())) return 0;
  if (peer->wanted <= peer->complete) unproven_.push_back(peer);
  const Mark mark = peer->wanted = peer->started;
  prove_all();
  endpoint_.progress();  // it may be over at once
  prove_all();
  if (peer->complete >= mark && !peer->has_failed()) return 0;
  progress_.wake_if_asleep();
  return mark;
}

// A marker's get is behind all gets; where the peer answers instead, they are waited for as well.
void Engine::prove(Peer& peer) {
  Proof& proof = peer.proof;
  if (proof.of != 0) {
    if (!proof.over || (proof.status == PW_NIC_OK && peer.gets.under_way.load() != 0)) return;
    if (peer.failed == PW_NIC_OK) peer.failed = proof.status;
    peer.complete = std::max(peer.complete, std::exchange(proof.of, 0));
  }
  if (peer.wanted <= peer.complete) return;
  proof.over = false;
  proof.of = peer.started;
  const pw_nic_status status = peer.stream->flush(&proof);
  if (status == PW_NIC_OK) return;
  proof.of = 0;
  if (status == PW_NIC_BUSY) return;  // at the next turn
  if (peer.failed == PW_NIC_OK) peer.failed = status;
  peer.complete = peer.wanted;
}

void Engine::prove_all() {
  std::erase_if(unproven_, [this](Peer* peer) {
    prove(*peer);
    return peer->wanted <= peer->complete || team_.lost(peer->rank);
  });
}

bool Engine::reached(int rank, Mark mark) {
  const Lock lock(mutex_);
  return peers_[static_cast<size_t>(rank)]->complete >= mark || team_.lost(rank) ||
         closed_.load(std::memory_order_relaxed) != 0;
}

pw_status Engine::outcome(int rank, Mark mark) {
  Lock lock(mutex_);
  Peer& peer = *peers_[static_cast<size_t>(rank)];
  if (peer.complete < mark) {
    lock.unlock();
    if (team_.lost(rank)) return pw::fail(PW_PEER_LOST, "peerway: " + team_.describe_loss(rank));
    return pw::fail(PW_CLOSED, format("peerway: this context was closed while transfers of the card {} with "
                                      "rank {} were under way",
                                      name(), rank));
  }
  pw_nic_status failed = std::exchange(peer.failed, PW_NIC_OK);
  for (Tally* tally : {&peer.puts, &peer.gets}) {  // told once, even where the proof has told it
    const pw_nic_status of = std::exchange(tally->failed, PW_NIC_OK);
    if (failed == PW_NIC_OK) failed = of;
  }
  return failed == PW_NIC_OK ? PW_OK : failure(lock, rank, failed);
}

}  // namespace pw::nic
