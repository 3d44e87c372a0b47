// Messages by Peerway: a put into the receiver's memory that raises a signal there. On the channel `panel`
// the receiver first raises a signal of the sender, which stands for the room that it has.
#include <algorithm>
#include <chrono>
#include <optional>
#include <peerway/peerway.hpp>

#include "comm.h"

namespace hpl {

namespace {

using peerway::check;

/// A signal that peers raise, and how much of it has been used here; and theirs that this rank raises.
struct Counter {
  peerway::Signal mine;
  std::optional<peerway::Remote> theirs;
  uint64_t used = 0;
};

template <typename List>
auto& at(List& list, int index) {
  return list[static_cast<size_t>(index)];
}

/// A pool of this rank, and those of all.
class Shared {
 public:
  void open(peerway::Context& context, peerway::Team& team, Pool pool, peerway::Timeout timeout) {
    mine_.emplace(context.register_memory(pool.memory, pool.bytes));
    for (const auto& key : team.all_gather(mine_->key(), timeout)) all_.push_back(context.import(key));
  }
  void close() {
    all_.clear();
    mine_.reset();
  }
  [[nodiscard]] auto here(size_t offset, size_t bytes) const { return mine_->span(offset, bytes); }
  [[nodiscard]] auto there(int rank, size_t offset, size_t bytes) const {
    return all_[static_cast<size_t>(rank)].span(offset, bytes);
  }

 private:
  std::optional<peerway::Region> mine_;
  std::vector<peerway::Remote> all_;
};

class PeerwayComm : public Comm {
 public:
  explicit PeerwayComm(double timeout_s)
      : team_(peerway::Team::from_launcher()),
        context_(team_),
        timeout_(std::chrono::nanoseconds(static_cast<int64_t>(1e9 * timeout_s))) {
    for (int peer = 0; peer < size(); ++peer)
      for (int channel = 0; channel < kChannels; ++channel) arrivals_.push_back(counter(peer));
    for (int peer = 0; peer < size(); ++peer) rooms_.push_back(counter(peer));
    connect(arrivals_, kChannels);
    connect(rooms_, 1);
  }

  int rank() const override { return team_.rank(); }
  int size() const override { return team_.size(); }
  std::string name() const override { return "Peerway, put with signal"; }
  void barrier() override { team_.barrier(timeout_); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    check(pw_team_all_gather(team_.get(), all, mine, bytes, static_cast<uint64_t>(timeout_.count())));
  }

  void use(Pool device, Pool cpu) override {
    device_.close();
    cpu_.close();
    device_.open(context_, team_, device, timeout_);
    cpu_.open(context_, team_, cpu, timeout_);
  }

  void expect(int from, Channel channel, size_t, size_t) override {
    if (channel == Channel::panel) check(context_.raise(peerway::raise(*at(rooms_, from).theirs)));
  }
  bool expected_by(int to, Channel channel) override {
    const Counter& room = at(rooms_, to);
    return channel != Channel::panel || room.mine.value() > room.used;
  }
  void send(int to, Channel channel, size_t offset, size_t to_offset, size_t bytes) override {
    if (channel == Channel::panel) {
      Counter& room = at(rooms_, to);
      check(room.mine.wait(++room.used, timeout_));
    }
    const pw_raise there = peerway::raise(*arrival(to, channel).theirs);
    if (bytes == 0)
      check(context_.raise(there));
    else
      check(
          context_.put(pool(channel).there(to, to_offset, bytes), pool(channel).here(offset, bytes), there));
  }
  void settle(Channel) override { check(context_.flush(peerway::any_rank, timeout_)); }
  bool arrived(int from, Channel channel) override {
    const Counter& arrival = this->arrival(from, channel);
    return arrival.mine.value() > arrival.used;
  }
  void receive(int from, Channel channel) override {
    Counter& arrival = this->arrival(from, channel);
    check(arrival.mine.wait(++arrival.used, timeout_));
  }

 private:
  Shared& pool(Channel channel) { return of_cpu(channel) ? cpu_ : device_; }
  Counter& arrival(int peer, Channel channel) {
    return at(arrivals_, peer * kChannels + static_cast<int>(channel));
  }
  Counter counter(int peer) { return {context_.signal(peer), {}, 0}; }

  /// `each` signals for each peer: every rank gets from each peer the keys of those that are for it.
  void connect(std::vector<Counter>& counters, int each) {
    std::vector<std::byte> mine(counters.size() * (PW_KEY_MAX + sizeof(uint64_t)));
    const size_t width = PW_KEY_MAX + sizeof(uint64_t);
    for (size_t i = 0; i < counters.size(); ++i) {
      const peerway::Key key = counters[i].mine.key();
      const uint64_t length = key.size();
      std::copy_n(reinterpret_cast<const std::byte*>(&length), sizeof length, &mine[i * width]);
      std::copy(key.begin(), key.end(), &mine[i * width + sizeof length]);
    }
    const auto all = team_.all_gather(mine, timeout_);
    for (int peer = 0; peer < size(); ++peer)
      for (int i = 0; i < each; ++i) {
        const std::byte* entry = &at(all, peer)[static_cast<size_t>(rank() * each + i) * width];
        uint64_t length = 0;
        std::copy_n(entry, sizeof length, reinterpret_cast<std::byte*>(&length));
        at(counters, peer * each + i).theirs.emplace(context_.import({entry + sizeof length, length}));
      }
  }

  peerway::Team team_;
  peerway::Context context_;
  peerway::Timeout timeout_;
  std::vector<Counter> arrivals_, rooms_;
  Shared device_, cpu_;
};

}  // namespace

}  // namespace hpl

extern "C" hpl::Comm* hpl_make_comm(double timeout_s) { return new hpl::PeerwayComm(timeout_s); }
