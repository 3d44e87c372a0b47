// The two ends of a reliable flow of packets between two endpoints, without sockets and clocks of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "torus/packet.h"

namespace pw::torus {

using Datagram = std::vector<std::byte>;

/// What was sent and not yet taken by the other end.
class SendWindow {
 public:
  [[nodiscard]] bool room() const { return packets_.size() < limit_; }
  [[nodiscard]] bool empty() const { return packets_.empty(); }
  [[nodiscard]] uint64_t next_sequence() const { return first_ + packets_.size(); }

  /// The packet next_sequence(), sent now. `owner` is told of by acknowledge().
  Datagram& push(Datagram datagram, std::shared_ptr<void> owner, uint64_t now);

  /// Reads what the other end has taken; `taken(owner, datagram)` for each, in order. False for what it
  /// cannot have taken.
  template <typename Taken>
  bool acknowledge(uint64_t acknowledged, const std::array<uint64_t, 4>& arrived, uint64_t now,
                   Taken&& taken);

  /// `send(datagram)` for each packet that must have been lost: others that were sent three turns later
  /// arrived, or its time has passed.
  template <typename Send>
  void resend(uint64_t now, Send&& send);

  /// When the next one's time passes; UINT64_MAX: none is under way.
  [[nodiscard]] uint64_t next_timer() const;

 private:
  static constexpr uint64_t kShortest = 2'000'000, kFirst = 20'000'000, kLongest = 200'000'000;
  static constexpr uint32_t kFewest = 16;

  struct Packet {
    Datagram datagram;
    std::shared_ptr<void> owner;
    uint64_t sent, turn;
    bool arrived = false, again = false;
  };
  void arrive(Packet& packet, uint64_t now);
  [[nodiscard]] bool overtaken(const Packet& p) const { return p.turn + 3 <= newest_arrived_; }
  [[nodiscard]] uint64_t patience() const {
    if (round_trip_ == 0) return kFirst << std::min(silent_, 3u);
    return std::min((round_trip_ + 4 * swing_ + kShortest) << std::min(silent_, 8u), kLongest);
  }

  std::deque<Packet> packets_;
  uint64_t first_ = 1;  ///< sequence number of packets_[0]
  uint64_t turn_ = 0, newest_arrived_ = 0;
  uint64_t round_trip_ = 0, swing_ = 0;  ///< mean, and mean distance from it
  uint64_t probed_ = 0;                  ///< when a timer last passed
  uint32_t silent_ = 0;                  ///< timers that passed since the last acknowledgement
  uint32_t limit_ = kWindow;
};

/// What arrived, put in order.
class ReceiveWindow {
 public:
  /// `take(datagram)` for this one and those that waited for it, in order. False for one that is here
  /// already.
  template <typename Take>
  bool arrive(uint64_t sequence, std::span<const std::byte> datagram, Take&& take);

  void report(Header& header) const {
    header.acknowledged = expected_ - 1;
    header.arrived = arrived_;
  }

 private:
  bool shift();  ///< on to the next one; whether it is here already

  uint64_t expected_ = 1;
  std::array<uint64_t, 4> arrived_{};  ///< bit i: expected_ + i
  std::array<Datagram, kWindow> waiting_;
};

inline Datagram& SendWindow::push(Datagram datagram, std::shared_ptr<void> owner, uint64_t now) {
  packets_.push_back({std::move(datagram), std::move(owner), now, ++turn_});
  return packets_.back().datagram;
}

inline void SendWindow::arrive(Packet& packet, uint64_t now) {
  if (packet.arrived) return;
  packet.arrived = true;
  newest_arrived_ = std::max(newest_arrived_, packet.turn);
  if (packet.again) return;  // which of the two it was, nobody knows
  const uint64_t took = now - packet.sent;
  if (round_trip_ == 0) round_trip_ = took, swing_ = took / 2;
  const uint64_t apart = took > round_trip_ ? took - round_trip_ : round_trip_ - took;
  swing_ = (3 * swing_ + apart) / 4;
  round_trip_ = (7 * round_trip_ + took) / 8;
}

template <typename Taken>
bool SendWindow::acknowledge(uint64_t acknowledged, const std::array<uint64_t, 4>& arrived, uint64_t now,
                             Taken&& taken) {
  if (acknowledged >= next_sequence()) return false;
  if (acknowledged + 1 < first_) return true;  // an old one
  const size_t count = acknowledged + 1 - first_;
  for (size_t i = 0; i < count; ++i) arrive(packets_[i], now);
  for (size_t i = count; i < packets_.size() && i - count < kWindow; ++i)
    if ((arrived[(i - count) / 64] >> ((i - count) % 64) & 1) != 0) arrive(packets_[i], now);
  if (count > 0) {
    silent_ = 0;
    limit_ = std::min(kWindow, limit_ + static_cast<uint32_t>(count));
  }
  for (size_t i = 0; i < count; ++i) {
    Packet packet = std::move(packets_.front());
    packets_.pop_front();
    ++first_;
    taken(std::move(packet.owner), std::move(packet.datagram));
  }
  return true;
}

template <typename Send>
void SendWindow::resend(uint64_t now, Send&& send) {
  const uint64_t patient = patience();
  bool late = false;
  for (Packet& packet : packets_) {
    if (packet.arrived) continue;
    const bool over =
        !late && now >= std::max(packet.sent, probed_) + patient;  // the answer to one tells of the others
    if (!over && !overtaken(packet)) continue;
    late |= over;
    packet.sent = now;
    packet.turn = ++turn_;
    packet.again = true;
    send(packet.datagram);
  }
  if (!late) return;
  ++silent_;
  probed_ = now;
  limit_ = std::max(kFewest, limit_ / 2);
}

inline uint64_t SendWindow::next_timer() const {
  uint64_t oldest = UINT64_MAX;
  for (const Packet& packet : packets_)
    if (!packet.arrived) oldest = std::min(oldest, packet.sent);
  return oldest == UINT64_MAX ? oldest : std::max(oldest, probed_) + patience();
}

inline bool ReceiveWindow::shift() {
  waiting_[expected_ % kWindow].clear();
  ++expected_;
  for (size_t word = 0; word < 4; ++word)
    arrived_[word] = arrived_[word] >> 1 | (word < 3 ? arrived_[word + 1] << 63 : 0);
  return (arrived_[0] & 1) != 0;
}

template <typename Take>
bool ReceiveWindow::arrive(uint64_t sequence, std::span<const std::byte> datagram, Take&& take) {
  if (sequence < expected_ || sequence - expected_ >= kWindow) return false;
  const uint64_t ahead = sequence - expected_;
  if ((arrived_[ahead / 64] >> (ahead % 64) & 1) != 0) return false;
  if (ahead > 0) {
    arrived_[ahead / 64] |= uint64_t{1} << (ahead % 64);
    waiting_[sequence % kWindow].assign(datagram.begin(), datagram.end());
    return true;
  }
  take(datagram);
  while (shift()) take(std::span<const std::byte>(waiting_[expected_ % kWindow]));
  return true;
}

}  // namespace pw::torus
