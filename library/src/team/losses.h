// Records which ranks are lost, since when and how, and informs subscribers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "team/message.h"

namespace pw {

class Losses {
 public:
  /// `any_lost` is set to true with the first loss.
  Losses(int size, std::atomic<bool>& any_lost) : any_lost_(any_lost), how_(static_cast<size_t>(size)) {}

  [[nodiscard]] bool lost(int rank) const noexcept {
    return how_[static_cast<size_t>(rank)].load(std::memory_order_relaxed) != 0;
  }
  /// How the rank was lost; wire::How::none if it is not lost.
  [[nodiscard]] wire::How how(int rank) const noexcept {
    return static_cast<wire::How>(how_[static_cast<size_t>(rank)].load(std::memory_order_acquire));
  }
  [[nodiscard]] int first_lost() const noexcept { return first_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::vector<wire::Loss> known() const;

  /// "rank 2 was lost 0.8 s ago: its process (4711 on node01) ended without leaving the team".
  [[nodiscard]] std::string describe(int rank, const wire::Identity& identity) const;

  /// Records a loss; returns false if it is known already. Call deliver() afterwards.
  bool add(int rank, wire::How how);

  /// Calls all subscribers with the losses that they have not received yet. Call it from one thread only.
  void deliver();

  /// Until the returned handle is dropped, `callback` is called once for each loss, earlier ones included.
  /// Dropping the handle waits for a call in progress (except from within it).
  std::shared_ptr<void> subscribe(std::function<void(int)> callback);

 private:
  struct Subscription {
    std::function<void(int)> callback;
    size_t delivered = 0;  ///< number of entries of Book::order that were delivered
  };
  struct Book {  // outlives the team while a handle is held
    std::recursive_mutex mutex;
    std::vector<int> order;
    std::list<std::shared_ptr<Subscription>> subscriptions;
  };
  std::atomic<bool>& any_lost_;
  std::vector<std::atomic<uint8_t>> how_;  ///< a wire::How
  mutable std::mutex times_;               ///< protects the next member
  std::map<int, uint64_t> since_ns_;       ///< written before how_
  std::atomic<int> first_{-1};
  std::shared_ptr<Book> book_ = std::make_shared<Book>();
};

}  // namespace pw
