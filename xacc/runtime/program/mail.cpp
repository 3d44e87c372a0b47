#include "xacc/runtime/program/mail.h"

#include <algorithm>
#include <cstring>

#include "xacc/runtime/program/mail_peer.h"

namespace pwx {
namespace {

using peerway::check;
using peerway::Key;

size_t slots_of(size_t bytes) { return bytes == 0 ? 1 : (bytes + Mail::kSlotBytes - 1) / Mail::kSlotBytes; }

void append(Key& to, const Key& key) {
  const uint64_t length = key.size();
  const auto* bytes = reinterpret_cast<const std::byte*>(&length);
  to.insert(to.end(), bytes, bytes + sizeof length);
  to.insert(to.end(), key.begin(), key.end());
}

}  // namespace

Key mail_key_at(const Key& keys, size_t number) {
  size_t at = 0;
  for (;; --number) {
    uint64_t length = 0;
    std::memcpy(&length, keys.data() + at, sizeof length);
    at += sizeof length;
    if (number == 0)
      return {keys.begin() + static_cast<std::ptrdiff_t>(at),
              keys.begin() + static_cast<std::ptrdiff_t>(at + length)};
    at += length;
  }
}

Mail::Mail(peerway::Team& team, peerway::Context& context) : context_(context), rank_(team.rank()) {
  const auto size = static_cast<size_t>(team.size());
  if (size == 1) return;
  in_ = context.allocate(peerway::host, size * kPeerBytes);
  out_ = context.allocate(peerway::host, size * kPeerBytes);
  Key mine;
  append(mine, in_->key());
  for (size_t rank = 0; rank < size; ++rank) {
    auto& peer = *peers_.emplace_back(std::make_unique<Peer>());
    peer.rank = static_cast<int>(rank);
    peer.in = static_cast<std::byte*>(in_->address()) + rank * kPeerBytes;
    peer.out = static_cast<std::byte*>(out_->address()) + rank * kPeerBytes;
    std::memset(peer.in + kWordsAt, 0, kPeerBytes - kWordsAt);
    for (size_t s = 0; s < Peer::kSignals; ++s) {
      peer.signals.push_back(context.signal(static_cast<int>(rank)));
      append(mine, peer.signals.back().key());
    }
  }
  const std::vector<Key> all = team.all_gather(mine);
  for (size_t rank = 0; rank < size; ++rank) {
    Key& keys = peers_[rank]->keys;
    append(keys, mail_key_at(all[rank], 0));
    for (size_t s = 0; s < Peer::kSignals; ++s)
      append(keys, mail_key_at(all[rank], 1 + static_cast<size_t>(rank_) * Peer::kSignals + s));
  }
}

Mail::~Mail() = default;

Mail::Peer& Mail::peer(int rank) {
  Peer& peer = *peers_[static_cast<size_t>(rank)];
  peer.reach(context_);
  return peer;
}

/// How many of these slots one put fills: contiguous ones, and few enough that the receiver can begin soon.
size_t Mail::next_run(const Peer& peer, size_t slots) {
  return std::min({slots, kSlots - peer.sent % kSlots, size_t{4}});
}

/// Whether that many slots of the peer are free.
bool Mail::can_send(Peer& peer, size_t slots) {
  if (peer.sent + slots <= peer.known_emptied + kSlots) return true;
  peer.known_emptied = peer.signals[Peer::emptied].value();
  return peer.sent + slots <= peer.known_emptied + kSlots;
}

void Mail::send_run(Peer& peer, const void* data, size_t bytes) {
  const size_t at = peer.sent % kSlots * kSlotBytes, slots = slots_of(bytes);
  peer.sent += slots;
  const pw_notification filled = peerway::notify(peer.far_signals[Peer::filled], slots);
  if (bytes == 0) return check(context_.notify(filled));
  std::memcpy(peer.out + at, data, bytes);
  const auto base = static_cast<size_t>(rank_) * kPeerBytes;
  const auto local = static_cast<size_t>(peer.out - static_cast<std::byte*>(out_->address()));
  check(context_.put(peer.room->span(base + at, bytes), out_->span(local + at, bytes), filled));
}

/// Takes a filled slot. The sender is notified when half of the slots are free.
void Mail::take_slot(Peer& peer, void* data, size_t bytes) {
  if (bytes > 0) std::memcpy(data, peer.in + peer.taken % kSlots * kSlotBytes, bytes);
  if (++peer.taken - peer.returned < kSlots / 2) return;
  const auto status =
      context_.notify(peerway::notify(peer.far_signals[Peer::emptied], peer.taken - peer.returned));
  // a lost peer sends no more, and may have all it needs
  if (status != peerway::Status::peer_lost) check(status);
  peer.returned = peer.taken;
}

/// Waits for a signal; meanwhile it reads posts, so that other ranks need not wait.
void Mail::wait_for(peerway::Signal& signal, uint64_t value) {
  constexpr auto kLong = std::chrono::milliseconds(5);
  for (peerway::Status status = signal.wait(value, kLong); status != peerway::Status::ok;
       status = signal.wait(value, kLong)) {
    if (status != peerway::Status::timeout) check(status);
    look_for_words();
  }
}

void Mail::send(int rank, const void* data, size_t bytes) {
  Peer& to = peer(rank);
  const auto* from = static_cast<const std::byte*>(data);
  for (size_t slots = slots_of(bytes), slot = 0; slot < slots;) {
    const size_t run = next_run(to, slots - slot);
    if (!can_send(to, run)) {
      wait_for(to.signals[Peer::emptied], to.sent + run - kSlots);
      to.known_emptied = to.sent + run - kSlots;
    }
    const size_t done = slot * kSlotBytes;
    send_run(to, from + done, std::min(bytes - done, run * kSlotBytes));
    slot += run;
  }
}

void Mail::receive(int rank, void* data, size_t bytes) {
  Peer& from = peer(rank);
  auto* to = static_cast<std::byte*>(data);
  for (size_t slot = 0, slots = slots_of(bytes); slot < slots; ++slot) {
    wait_for(from.signals[Peer::filled], from.taken + 1);
    const size_t done = slot * kSlotBytes;
    take_slot(from, to + done, std::min(bytes - done, kSlotBytes));
  }
}

/// One call of exchange.
class Mail::ExchangeRun {
 public:
  ExchangeRun(Mail& mail, std::span<const Outgoing> out, std::span<const Incoming> in) : mail_(mail) {
    for (const Outgoing& message : out)
      sends_.push_back({&mail.peer(message.rank), message, 0, slots_of(message.bytes)});
    for (const Incoming& message : in)
      receives_.push_back({&mail.peer(message.rank), message, 0, slots_of(message.bytes)});
  }

  void run() {
    while (turn()) {
    }
  }

 private:
  template <typename Message>
  struct Moving {
    Peer* peer;
    Message message;
    size_t slot, slots;
    [[nodiscard]] size_t offset() const { return slot * kSlotBytes; }
    [[nodiscard]] size_t length(size_t run) const {
      return std::min(message.bytes - offset(), run * kSlotBytes);
    }
  };

  /// Moves what can be moved; false when all is done. If nothing can move, it waits briefly for one of the
  /// first messages.
  bool turn() {
    bool moved = false;
    // Messages between two ranks keep their order: for each peer, only the first unfinished one moves.
    std::vector<const Peer*> busy;
    const auto first = [&](const Peer* peer) {
      if (std::ranges::find(busy, peer) != busy.end()) return false;
      busy.push_back(peer);
      return true;
    };
    for (auto& send : sends_) {
      if (send.slot == send.slots || !first(send.peer)) continue;
      for (;;) {
        const size_t run = next_run(*send.peer, send.slots - send.slot);
        if (run == 0 || !mail_.can_send(*send.peer, run)) break;
        mail_.send_run(*send.peer, static_cast<const std::byte*>(send.message.data) + send.offset(),
                       send.length(run));
        send.slot += run;
        moved = true;
      }
    }
    busy.clear();
    for (auto& receive : receives_) {
      if (receive.slot == receive.slots || !first(receive.peer)) continue;
      receive.peer->known_filled = receive.peer->signals[Peer::filled].value();
      for (; receive.slot < receive.slots && receive.peer->taken < receive.peer->known_filled;
           ++receive.slot, moved = true)
        mail_.take_slot(*receive.peer, static_cast<std::byte*>(receive.message.data) + receive.offset(),
                        receive.length(1));
    }
    return moved || wait();
  }

  bool wait() {
    for (const auto& receive : receives_)
      if (receive.slot < receive.slots)
        return wait_for(receive.peer->signals[Peer::filled], receive.peer->taken + 1);
    for (const auto& send : sends_)
      if (send.slot < send.slots)
        return wait_for(send.peer->signals[Peer::emptied],
                        send.peer->sent + next_run(*send.peer, send.slots - send.slot) - kSlots);
    return false;
  }

  bool wait_for(peerway::Signal& signal, uint64_t value) {
    const peerway::Status status = signal.wait(value, kWaitSlice);
    if (status != peerway::Status::timeout)
      check(status);
    else
      mail_.look_for_words();
    return true;
  }

  Mail& mail_;
  std::vector<Moving<Outgoing>> sends_;
  std::vector<Moving<Incoming>> receives_;
};

void Mail::exchange(std::span<const Outgoing> out, std::span<const Incoming> in) {
  ExchangeRun(*this, out, in).run();
}

}  // namespace pwx
