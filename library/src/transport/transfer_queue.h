// The queue of transfers with one rank of a path that copies through a ring of bounce buffers. A start does
// as much of its transfer as is possible at once and never waits; the rest stays in the queue, and later
// polls continue it. Transfers are done in order.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/path.h"

namespace pw {

class TransferQueue {
 public:
  /// Makes the queue for `rank`; `waiting` counts the queued transfers of all queues of one path.
  TransferQueue(int rank, Progress& progress, std::atomic<uint64_t>& waiting)
      : rank_(rank), progress_(progress), waiting_(waiting) {}
  virtual ~TransferQueue() = default;
  TransferQueue(const TransferQueue&) = delete;

  /// Accepts the transfer and does what can be done now. If `turn` is not null, its total is stored after the
  /// transfer. Throws Error.
  pw_status start(const Transfer& transfer, SignalTurn* turn);

  /// Continues queued transfers; returns whether something happened.
  bool poll();
  /// Whether transfers are queued. Takes the lock of start(), so that the progress thread cannot miss one.
  [[nodiscard]] bool waits();

  /// Like those of a Marker.
  [[nodiscard]] Mark mark() const { return accepted_.load(std::memory_order_acquire); }
  bool reached(Mark mark);
  pw_status outcome(Mark mark);

 protected:
  struct QueuedTransfer {
    Transfer transfer;
    Remote* signal = nullptr;  ///< stored to after the transfer; null: no notification
    uint64_t total = 0;        ///< the value to store
    uint64_t by = 0;
    bool posted = false;    ///< whether the other end was asked for it
    bool given_up = false;  ///< its bytes will not come any more, and its memory must not be touched
    std::vector<std::shared_ptr<const void>> kept{};  ///< objects that it uses, kept alive while it is queued
  };

  // Called with the lock held:

  /// Does what can be done for the transfer now; sets `done` once this end's half is complete. A transfer
  /// that was given up before it was posted is posted without bytes, so that both ends count it. May throw
  /// Error only before it posts.
  virtual pw_status go_on(QueuedTransfer& next, bool& done) = 0;
  /// Whether nothing uses the memory of what was given to go_on() any more. A device completes its work
  /// whether or not the other end lives; no thread waits for that while it holds the lock.
  virtual bool unused() = 0;
  /// Lets the rest of the first transfer, which was posted, pass without touching its memory. Returns false,
  /// and must be called again, while something still uses the memory (unused()).
  virtual bool leave_memory() = 0;
  /// Returns a failure if the other end cannot serve any transfer. The next transfer asks it again.
  virtual pw_status refused() { return PW_OK; }
  /// Called when a transfer waits for the other end.
  virtual void blocked() {}
  /// A number that grows with each chunk that passes.
  [[nodiscard]] virtual uint64_t chunks() const = 0;

  // Called without the lock:

  /// Whether the rank was lost or a context was closed. why_over() returns that as a failure.
  [[nodiscard]] virtual bool over() const = 0;
  virtual pw_status why_over() = 0;
  /// Whether the other end has done the first `count` transfers that it was asked for. outcome_there()
  /// reports each failure there once.
  [[nodiscard]] virtual bool served(uint64_t count) const = 0;
  virtual pw_status outcome_there() = 0;

  const int rank_;
  std::mutex mutex_;  ///< locked after the lock of a signal
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  /// Whether no transfer can continue: over() is true, or a transfer failed half-way.
  [[nodiscard]] bool ended() const { return broken_.load(std::memory_order_acquire) != PW_OK || over(); }

 private:
  /// A notification that was counted and will not be stored.
  struct Unstored {
    std::shared_ptr<Remote> signal;
    uint64_t by;
  };

  pw_status why_ended();
  pw_status advance(QueuedTransfer& next, bool& done);
  void go_on_with_all(std::deque<QueuedTransfer>& finished, std::vector<Unstored>& unstored);
  bool give_up_closed(std::vector<Unstored>& unstored);
  bool give_up_refused(std::deque<QueuedTransfer>& finished, std::vector<Unstored>& unstored);
  void give_up(QueuedTransfer& waiting, std::vector<Unstored>& unstored);
  bool drop_all();
  void record_failure(pw_status failed);
  [[nodiscard]] bool done(Mark mark) const;

  Progress& progress_;
  std::atomic<uint64_t>& waiting_;
  std::deque<QueuedTransfer> queue_;  ///< the first may be under way
  pw_status failed_ = PW_OK;  ///< the first failure at this end since the last outcome(); `why_` is its
                              ///< message
  std::string why_;
  std::atomic<pw_status> broken_{PW_OK};
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint64_t> moved_{0};    ///< number of leading transfers that are done at this end
  std::atomic<uint64_t> refused_{0};  ///< number of these that the other end was not asked for
};

}  // namespace pw
