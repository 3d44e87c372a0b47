// Several ranks as threads of the test's own process, each with its own team and context, so that sanitizers
// see all sides of a transfer. What is between them is what is between processes: sockets, memfds,
// cross-memory attach.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "context/context.h"
#include "context/signal.h"
#include "team/team.h"

namespace pw::testing {

inline constexpr pw_device kHost{PW_HOST, 0};
inline constexpr uint64_t kSecond = 1'000'000'000;

class Ranks {
 public:
  explicit Ranks(int size) : teams_(static_cast<size_t>(size)), contexts_(static_cast<size_t>(size)) {
    each([&](int rank) {
      const auto at = static_cast<size_t>(rank);
      teams_[at] = make_team(rank, size, [&](std::span<std::byte> data) { broadcast(rank, data); });
      contexts_[at] = std::make_unique<Context>(*teams_[at]);
    });
  }
  ~Ranks() {
    contexts_.clear();
    each([&](int rank) { teams_[static_cast<size_t>(rank)].reset(); });
  }

  Context& operator[](int rank) { return *contexts_[static_cast<size_t>(rank)]; }
  void close(int rank) { contexts_[static_cast<size_t>(rank)].reset(); }

  /// Runs `body` as every rank at once; what one throws is thrown.
  void each(const std::function<void(int rank)>& body) {
    std::vector<std::future<void>> running;
    for (int rank = 0; rank < static_cast<int>(teams_.size()); ++rank)
      running.push_back(std::async(std::launch::async, [&body, rank] { body(rank); }));
    for (auto& rank : running) rank.get();
  }

  /// Another rank's region or signal, as rank `at` imports it.
  std::shared_ptr<Remote> import(int at, int owner, Region& region) {
    return (*this)[at].import((*this)[owner].key_of(region));
  }
  std::shared_ptr<Remote> import(int at, const Signal& signal) { return (*this)[at].import(signal.key()); }

 private:
  void broadcast(int rank, std::span<std::byte> data) {
    std::unique_lock lock(mutex_);
    if (rank == 0) {
      text_.assign(data.begin(), data.end());
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return !text_.empty(); });
    std::ranges::copy(text_, data.begin());
  }

  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte> text_;
};

inline pw_block range(uint64_t offset, uint64_t bytes) {
  pw_block block{};
  block.offset = offset;
  block.block_bytes = bytes;
  return block;
}

}  // namespace pw::testing
