#include "team/losses.h"

#include "base/clock.h"
#include "base/format.h"

namespace pw {

bool Losses::add(int rank, wire::How how) {
  const auto index = static_cast<size_t>(rank);
  std::lock_guard lock(book_->mutex);
  if (how_[index].load(std::memory_order_relaxed) != 0) return false;
  {
    const std::lock_guard times(times_);
    since_ns_[rank] = now_ns();
  }
  how_[index].store(static_cast<uint8_t>(how), std::memory_order_release);
  any_lost_.store(true, std::memory_order_release);
  int none = -1;
  first_.compare_exchange_strong(none, rank);
  book_->order.push_back(rank);
  return true;
}

std::vector<wire::Loss> Losses::known() const {
  const std::lock_guard lock(book_->mutex);
  std::vector<wire::Loss> losses;
  for (const int rank : book_->order) losses.push_back({static_cast<uint32_t>(rank), how(rank)});
  return losses;
}

void Losses::deliver() {
  std::lock_guard lock(book_->mutex);
  const auto subscriptions = book_->subscriptions;  // a callback may drop a handle
  for (const auto& subscription : subscriptions)
    while (subscription->callback && subscription->delivered < book_->order.size())
      subscription->callback(book_->order[subscription->delivered++]);
}

std::shared_ptr<void> Losses::subscribe(std::function<void(int)> callback) {
  auto subscription = std::make_shared<Subscription>(Subscription{std::move(callback)});
  {
    std::lock_guard lock(book_->mutex);
    book_->subscriptions.push_back(subscription);
  }
  return {subscription.get(), [book = book_, subscription](void*) {
            std::lock_guard lock(book->mutex);
            subscription->delivered =
                SIZE_MAX;  // ends deliver()'s loop when dropped from within the callback
            book->subscriptions.remove(subscription);
          }};
}

std::string Losses::describe(int rank, const wire::Identity& identity) const {
  const wire::How how = this->how(rank);  // read before the time, because the time is written first
  if (how == wire::How::none) return format("rank {} is not lost", rank);
  uint64_t since = 0;
  {
    const std::lock_guard times(times_);
    since = since_ns_.at(rank);
  }
  const double seconds = static_cast<double>(now_ns() - since) / 1e9;
  if (how == wire::How::departed) return format("rank {} left the team {:.1f} s ago", rank, seconds);
  if (how == wire::How::died)
    return format("rank {} was lost {:.1f} s ago: its process ({} on {}) ended without leaving the team",
                  rank, seconds, identity.process, identity.host_name);
  return format(
      "rank {} ended {:.1f} s ago (process {} on {}); whether it left in good order is not known, "
      "because rank 0 had left before",
      rank, seconds, identity.process, identity.host_name);
}

}  // namespace pw
