// The operations of an engine: transfers, words, and waiting for them.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "transport/blocks.h"
#include "transport/nic/peer.h"

namespace pw::nic {

pw_status NicEngine::failure(Lock& lock, int rank, pw_nic_status status) {
  const std::string why = endpoint_.why(status);
  lock.unlock();
  if (team_.lost(rank)) return pw::fail(PW_PEER_LOST, team_.describe_loss(rank));
  if (status == PW_NIC_UNREACHABLE)
    return pw::fail(PW_PEER_LOST, format("rank {} is out of reach of the NIC {}: {}", rank, name(), why));
  if (status == PW_NIC_REFUSED)
    return pw::fail(PW_STALE_KEY, format("the NIC {} finds memory of rank {} closed ({}); ask that "
                                         "rank for a new key",
                                         name(), rank, why));
  return pw::fail(PW_SYSTEM, format("a transfer of the NIC {} with rank {} failed: {}", name(), rank, why));
}

/// Does what there is room for now, and leaves the rest to progress.
template <typename GoOn>
pw_status NicEngine::in_order(int rank, std::initializer_list<const void*> uses, GoOn&& go_on) {
  Lock lock(mutex_);
  NicPeer& to = peer(rank);
  bool done = false;
  if (!to.backlog.empty()) {
    endpoint_.progress();
    resume_all();
  }
  if (to.backlog.empty()) {
    pw_nic_status status = go_on(to, done);
    if (status == PW_NIC_BUSY && endpoint_.progress() > 0) status = go_on(to, done);
    if (status == PW_NIC_UNREACHABLE && !team_.lost(rank)) {  // a flush says why, once the team knows
      if (to.failed == PW_NIC_OK) to.failed = status;
      done = true;
    } else if (status != PW_NIC_OK && status != PW_NIC_BUSY) {
      return failure(lock, rank, status);
    }
  }
  to.flushes.accept();
  if (done) {
    to.flushes.issue();
  } else {
    if (to.backlog.empty()) backlogged_.push_back(&to);
    to.backlog.add(
        [go_on = std::forward<GoOn>(go_on), &to](bool& over) mutable {
          const pw_nic_status status = go_on(to, over);
          if (status == PW_NIC_OK || status == PW_NIC_BUSY) return PW_OK;
          if (to.failed == PW_NIC_OK) to.failed = status;
          over = true;
          return PW_OK;
        },
        uses);
  }
  idle_.store(0, std::memory_order_relaxed);
  if (endpoint_.unfinished() || !done) progress_.wake_if_asleep();
  return PW_OK;
}

void NicEngine::resume_all() {
  std::erase_if(backlogged_, [this](NicPeer* peer) {
    if (team_.lost(peer->rank)) peer->backlog.clear();
    peer->flushes.issue(peer->backlog.resume());
    return peer->backlog.empty();
  });
}

// Called when memory goes away: operations that the NIC was not given yet fail.
void NicEngine::drop(const void* memory) {
  for (NicPeer* peer : backlogged_) peer->backlog.drop(memory);
}

// Starts one operation of at most as many bytes as the NIC takes at once.
pw_nic_status NicEngine::start_piece(NicPeer& peer, Op op, nic::RemoteMemory& remote, uint64_t offset,
                                     std::byte* data, nic::Memory& local, uint64_t bytes,
                                     const WordStore* word) {
  Stream& stream = *peer.stream;
  Tally& tally = op == Op::put ? peer.puts : peer.gets;
  const pw_nic_status status = op == Op::get ? stream.get(remote, offset, data, local, bytes, &tally)
                               : word != nullptr
                                   ? stream.put_word(remote, offset, data, &local, bytes, *word, &tally)
                                   : stream.put(remote, offset, data, &local, bytes, &tally);
  if (status == PW_NIC_OK) tally.add(1);
  return status;
}

pw_status NicEngine::move(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data,
                          RegionMemory& local, uint64_t bytes, const std::optional<WordStore>& word) {
  return in_order(rank, {remote.memory.get(), local.memory.get(), word ? word->remote : nullptr},
                  [this, op, remote = remote.memory.get(), offset, data, local = local.memory.get(), bytes,
                   word, moved = uint64_t{0}](NicPeer& peer, bool& done) mutable {
                    pw_nic_status status = PW_NIC_OK;
                    while (status == PW_NIC_OK && moved < bytes) {
                      const uint64_t next = std::min(bytes - moved, endpoint_.info().largest);
                      const WordStore* last = word && moved + next == bytes ? &*word : nullptr;
                      status =
                          start_piece(peer, op, *remote, offset + moved, data + moved, *local, next, last);
                      if (status == PW_NIC_OK) moved += next;
                    }
                    done = moved == bytes;
                    return status;
                  });
}

namespace {

/// Cuts a layout into pieces that a NIC takes: rows of blocks if it can put a whole row at once, or parts of
/// single blocks.
class Pieces {
 public:
  Pieces(Op op, const Layout& layout, uint64_t largest, bool rows)
      : put_(op == Op::put), layout_(layout), largest_(largest), rows_(rows), cursor_(layout, rows ? 1 : 0) {
    over_ = !cursor_.next(to_, from_);
  }

  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] bool rows() const { return rows_; }
  [[nodiscard]] uint64_t remote() const { return (put_ ? to_ : from_) + moved_ * (rows_ ? stride(put_) : 1); }
  [[nodiscard]] uint64_t local() const { return (put_ ? from_ : to_) + moved_ * (rows_ ? stride(!put_) : 1); }
  [[nodiscard]] uint64_t bytes() const { return std::min(layout_.shape.block_bytes - moved_, largest_); }
  [[nodiscard]] Blocks blocks() const {
    const uint64_t at_once = std::max<uint64_t>(largest_ / layout_.shape.block_bytes, 1);
    return {std::min(at_once, whole() - moved_), layout_.shape.block_bytes, stride(true), stride(false)};
  }
  /// Moves on after the current piece was started.
  void step() {
    moved_ += rows_ ? blocks().count : bytes();
    if (moved_ < whole()) return;
    moved_ = 0;
    over_ = !cursor_.next(to_, from_);
  }

 private:
  [[nodiscard]] uint32_t inner() const { return layout_.shape.dims - 1; }
  [[nodiscard]] uint64_t whole() const {
    return rows_ ? layout_.shape.count[inner()] : layout_.shape.block_bytes;
  }
  [[nodiscard]] uint64_t stride(bool to) const {
    return static_cast<uint64_t>((to ? layout_.to : layout_.from)[inner()]);
  }

  bool put_;
  Layout layout_;
  uint64_t largest_;
  bool rows_;
  BlockCursor cursor_;
  uint64_t to_ = 0, from_ = 0;
  uint64_t moved_ = 0;  ///< of the current row in blocks, or of the current block in bytes
  bool over_ = false;
};

}  // namespace

pw_status NicEngine::move_blocks(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data,
                                 RegionMemory& local, const Layout& layout) {
  const uint64_t largest = endpoint_.info().largest;
  const uint32_t inner = layout.shape.dims - 1;
  const bool rows = op == Op::put && layout.shape.block_bytes <= largest && layout.to[inner] > 0 &&
                    layout.from[inner] > 0 && puts_strided(rank);
  return in_order(rank, {remote.memory.get(), local.memory.get()},
                  [op, remote = remote.memory.get(), offset, data, local = local.memory.get(),
                   pieces = Pieces(op, layout, largest, rows)](NicPeer& peer, bool& done) mutable {
                    pw_nic_status status = PW_NIC_OK;
                    for (; status == PW_NIC_OK && !pieces.over();) {
                      const uint64_t at = offset + pieces.remote();
                      std::byte* from = data + pieces.local();
                      status = pieces.rows() ? start_row(peer, *remote, at, from, *local, pieces.blocks())
                                             : start_piece(peer, op, *remote, at, from, *local,
                                                           pieces.bytes(), nullptr);
                      if (status == PW_NIC_OK) pieces.step();
                    }
                    done = pieces.over();
                    return status;
                  });
}

pw_nic_status NicEngine::start_row(NicPeer& peer, nic::RemoteMemory& remote, uint64_t offset,
                                   const std::byte* data, nic::Memory& local, const Blocks& blocks) {
  const pw_nic_status status = peer.stream->put_strided(remote, offset, data, local, blocks, &peer.puts);
  if (status == PW_NIC_OK) peer.puts.add(1);
  return status;
}

pw_status NicEngine::put_word(int rank, const WordStore& word) {
  return in_order(rank, {word.remote}, [word](NicPeer& peer, bool& done) {
    const pw_nic_status status = peer.stream->store_word(word);
    done = status == PW_NIC_OK;
    return status;
  });
}

std::shared_ptr<const uint64_t> NicEngine::get_word(int rank, RankMemory& remote, uint64_t offset) {
  const auto get = [this, remote = remote.memory.get(), offset](NicPeer& peer, bool& done) {
    auto* landing = reinterpret_cast<std::byte*>(scratch_word_);
    const pw_nic_status status =
        start_piece(peer, Op::get, *remote, offset, landing, *scratch_, sizeof *scratch_word_, nullptr);
    done = status == PW_NIC_OK;
    return status;
  };
  if (const pw_status status = in_order(rank, {remote.memory.get()}, get); status != PW_OK)
    throw Error(status, last_error_message());
  return {shared_from_this(), scratch_word_};
}

// ---- marks ----

Mark NicEngine::mark(int rank) {
  const Lock lock(mutex_);
  NicPeer* peer = peers_[static_cast<size_t>(rank)].get();
  if (peer == nullptr || (peer->flushes.all_complete() && !peer->has_failed())) return 0;
  if (!peer->flushes.wanting()) awaiting_flush_.push_back(peer);
  const Mark mark = peer->flushes.want();
  advance_flushes();
  endpoint_.progress();  // it may be complete at once
  advance_flushes();
  if (peer->flushes.reached(mark) && !peer->has_failed()) return 0;
  progress_.wake_if_asleep();
  return mark;
}

// A flush that is the get of a marker comes back after all earlier gets. If the peer answers a request
// instead, gets may still be outstanding, so their number is checked as well.
void NicEngine::advance_flush(NicPeer& peer) {
  PendingFlush& flush = peer.flush;
  if (peer.flushes.under_way()) {
    if (!flush.over || (flush.status == PW_NIC_OK && peer.gets.under_way.load() != 0)) return;
    if (peer.failed == PW_NIC_OK) peer.failed = flush.status;
    peer.flushes.end();
  }
  if (!peer.flushes.due()) return;
  flush.over = false;
  peer.flushes.begin();
  const pw_nic_status status = peer.stream->flush(&flush);
  if (status == PW_NIC_OK) return;
  if (status == PW_NIC_BUSY) return peer.flushes.put_off();  // tried again at the next poll
  if (peer.failed == PW_NIC_OK) peer.failed = status;
  peer.flushes.give_up();
}

void NicEngine::advance_flushes() {
  std::erase_if(awaiting_flush_, [this](NicPeer* peer) {
    advance_flush(*peer);
    return !peer->flushes.wanting() || team_.lost(peer->rank);
  });
}

// The NIC may learn of a death before the team does. The team's message says more, so it gets some time to
// arrive.
bool NicEngine::is_due(NicPeer& peer) {
  constexpr uint64_t kWhile = 200'000'000;  // ns
  if (!peer.out_of_reach()) return true;
  if (peer.report_at == 0) peer.report_at = deadline_after(kWhile);
  return now_ns() >= peer.report_at;
}

bool NicEngine::reached(int rank, Mark mark) {
  const Lock lock(mutex_);
  NicPeer& peer = *peers_[static_cast<size_t>(rank)];
  return (peer.flushes.reached(mark) && is_due(peer)) || team_.lost(rank) ||
         closed_.load(std::memory_order_relaxed) != 0;
}

pw_status NicEngine::outcome(int rank, Mark mark) {
  Lock lock(mutex_);
  NicPeer& peer = *peers_[static_cast<size_t>(rank)];
  if (!peer.flushes.reached(mark)) {
    lock.unlock();
    if (team_.lost(rank)) return pw::fail(PW_PEER_LOST, team_.describe_loss(rank));
    return pw::fail(PW_CLOSED, format("this context was closed while transfers of the NIC {} with "
                                      "rank {} were under way",
                                      name(), rank));
  }
  peer.report_at = 0;
  const pw_status late = peer.backlog.outcome();
  pw_nic_status failed = std::exchange(peer.failed, PW_NIC_OK);
  for (Tally* tally : {&peer.puts, &peer.gets}) {  // reported once, even if the flush has reported it, too
    const pw_nic_status of = std::exchange(tally->failed, PW_NIC_OK);
    if (failed == PW_NIC_OK) failed = of;
  }
  return failed == PW_NIC_OK ? late : failure(lock, rank, failed);
}

}  // namespace pw::nic
