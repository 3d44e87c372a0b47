// Messages by Peerway: a put into the receiver's memory that notifies a signal there. On the channel `panel`
// the receiver first notifies a signal of the sender, which means that it has room.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <peerway/peerway.hpp>

#include "comm.h"
#include "counter_peerway.h"
#include "prepared_peerway.h"

namespace hpl {

namespace {

using peerway::check;

template <typename List>
auto& at(List& list, int index) {
  return list[static_cast<size_t>(index)];
}

/// This rank's pool, and those of all ranks.
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
  [[nodiscard]] pw_device device() const { return mine_->device(); }
  [[nodiscard]] auto here(size_t offset, size_t bytes) const { return mine_->span(offset, bytes); }
  /// Returns the address at which kernels of this rank's GPU reach another rank's pool.
  [[nodiscard]] char* reach(int rank) const {
    return reinterpret_cast<char*>(all_[static_cast<size_t>(rank)].handle(device()).address);
  }
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
    std::vector<int> everyone(static_cast<size_t>(size()));
    std::iota(everyone.begin(), everyone.end(), 0);
    arrivals_ = make_counters(team_, context_, everyone, kHostChannels, timeout_);
    credits_ = make_counters(team_, context_, everyone, 1, timeout_);
  }

  int rank() const override { return team_.rank(); }
  int size() const override { return team_.size(); }
  std::string name() const override { return "Peerway, put with signal"; }
  void barrier() override { team_.barrier(timeout_); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    check(pw_team_all_gather(team_.get(), all, mine, bytes, static_cast<uint64_t>(timeout_.count())));
  }

  void use(Pool device, Pool cpu) override {
    prepared_.reset();
    device_.close();
    cpu_.close();
    device_.open(context_, team_, device, timeout_);
    cpu_.open(context_, team_, cpu, timeout_);
  }
  bool prepare(const std::vector<int>& group, const Slots& slots) override {
    prepared_.emplace(
        team_, context_, timeout_, group, slots, device_.device(),
        [&](int rank, size_t offset, size_t bytes) { return device_.there(rank, offset, bytes); },
        [&](size_t offset, size_t bytes) { return device_.here(offset, bytes); });
    return true;
  }

  char* reach(int rank, size_t offset, std::string& why_not) override {
    try {
      return device_.reach(rank) + offset;
    } catch (const peerway::Error& error) {
      why_not = error.what();
      return nullptr;
    }
  }

  void expect(int from, Channel channel, size_t offset, size_t bytes) override {
    if (channel == Channel::prepared) prepared_->expect(from, offset, bytes);
    if (needs_credit(channel)) check(context_.notify(peerway::notify(*at(credits_, from).theirs)));
  }
  bool expected_by(int to, Channel channel) override {
    return !needs_credit(channel) || at(credits_, to).arrived();
  }
  void send(int to, Channel channel, size_t offset, size_t to_offset, size_t bytes) override {
    if (needs_credit(channel)) at(credits_, to).take(timeout_);
    const pw_notification there = peerway::notify(*arrival(to, channel).theirs);
    if (bytes == 0)
      check(context_.notify(there));
    else
      check(
          context_.put(pool(channel).there(to, to_offset, bytes), pool(channel).here(offset, bytes), there));
  }
  void send_behind(void* queue, int to, size_t offset, size_t bytes) override {
    at(credits_, to).take(timeout_);
    prepared_->start(queue, to, offset, bytes);
  }
  void settle(Channel channel) override {
    if (channel == Channel::prepared) return prepared_->settle();
    check(context_.flush(peerway::any_rank, timeout_));
  }
  bool arrived(int from, Channel channel) override {
    return channel == Channel::prepared ? prepared_->arrived(from) : arrival(from, channel).arrived();
  }
  void receive(int from, Channel channel) override {
    if (channel == Channel::prepared) return prepared_->receive(from);
    arrival(from, channel).take(timeout_);
  }

 private:
  Shared& pool(Channel channel) { return of_cpu(channel) ? cpu_ : device_; }
  /// Whether a sender waits until its receiver has room.
  static bool needs_credit(Channel channel) {
    return channel == Channel::panel || channel == Channel::prepared;
  }
  Counter& arrival(int peer, Channel channel) {
    return at(arrivals_, peer * kHostChannels + static_cast<int>(channel));
  }

  peerway::Team team_;
  peerway::Context context_;
  peerway::Timeout timeout_;
  std::vector<Counter> arrivals_, credits_;
  Shared device_, cpu_;
  std::optional<Prepared> prepared_;
};

}  // namespace

}  // namespace hpl

extern "C" hpl::Comm* hpl_make_comm(double timeout_s) { return new hpl::PeerwayComm(timeout_s); }
