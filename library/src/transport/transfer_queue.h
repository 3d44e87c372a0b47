// Transfers with one rank, done in order, each as far as it can go at present. Transfers that cannot go on
// wait in the queue, so that a start never waits. The base class of paths with rings of bounce buffers.
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
  /// Towards that rank; `waiting` counts what waits in the queues of one path.
  TransferQueue(int rank, Progress& progress, std::atomic<uint64_t>& waiting)
      : rank_(rank), progress_(progress), waiting_(waiting) {}
  virtual ~TransferQueue() = default;
  TransferQueue(const TransferQueue&) = delete;

  /// Takes the transfer and does of it what can be done now. With a turn, its total is stored afterwards.
  /// Throws Error.
  pw_status start(const Transfer& transfer, SignalTurn* turn);

  /// Goes on with what waits; true when something happened.
  bool turn();
  /// Whether something waits. Takes the lock of start(), so that the progress thread misses nothing.
  [[nodiscard]] bool waits();

  /// See Marker.
  [[nodiscard]] Mark mark() const { return accepted_.load(std::memory_order_acquire); }
  bool reached(Mark mark);
  pw_status outcome(Mark mark);

 protected:
  struct Waiting {
    Transfer transfer;
    Remote* signal = nullptr;  ///< whose word is stored afterwards; null: none
    uint64_t total = 0;        ///< what is stored
    uint64_t by = 0;
    bool posted = false;    ///< the other end was asked for it
    bool given_up = false;  ///< its bytes do not come any more, and its memory is not touched
    std::vector<std::shared_ptr<const void>> kept{};  ///< what it uses, while it is in the queue
  };

  // With the lock:

  /// Does what can be done of the transfer now; `done` once this end's half of it is. A transfer that was
  /// given up before it was posted is posted without bytes, so that both ends count alike. May throw Error
  /// before it posts.
  virtual pw_status go_on(Waiting& next, bool& done) = 0;
  /// Whether nothing uses the memory of what was given to go_on() any more. A device ends what it was given,
  /// whether or not the other end lives; nobody waits for it with the lock.
  virtual bool unused() = 0;
  /// Once unused(), the bytes of the first, which was posted, are passed without its memory from here on.
  /// False before: ask again.
  virtual bool leave_memory() = 0;
  /// The other end cannot serve any transfer: a failure. The next transfer asks it again.
  virtual pw_status refused() { return PW_OK; }
  /// Something waits for the other end.
  virtual void blocked() {}
  /// Grows with each chunk that passes.
  [[nodiscard]] virtual uint64_t chunks() const = 0;

  // Without:

  /// The rank was lost, or a context closed. And that as a failure.
  [[nodiscard]] virtual bool over() const = 0;
  virtual pw_status why_over() = 0;
  /// Whether the other end has carried out its first `count` requests; and how, each failure once.
  [[nodiscard]] virtual bool served(uint64_t count) const = 0;
  virtual pw_status outcome_there() = 0;

  const int rank_;
  std::mutex mutex_;  ///< after the lock of a signal
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  /// Nothing goes on any more: over(), or a transfer ended half way, so that none can follow.
  [[nodiscard]] bool ended() const { return broken_.load(std::memory_order_acquire) != PW_OK || over(); }

 private:
  /// A notification that was counted, and will not be stored.
  struct Unstored {
    std::shared_ptr<Remote> signal;
    uint64_t by;
  };

  pw_status why_ended();
  pw_status advance(Waiting& next, bool& done);
  void go_on_with_all(std::deque<Waiting>& finished, std::vector<Unstored>& unstored);
  bool give_up_closed(std::vector<Unstored>& unstored);
  bool give_up_refused(std::deque<Waiting>& finished, std::vector<Unstored>& unstored);
  void give_up(Waiting& waiting, std::vector<Unstored>& unstored);
  bool drop_all();
  void note(pw_status failed);
  [[nodiscard]] bool done(Mark mark) const;

  Progress& progress_;
  std::atomic<uint64_t>& waiting_;
  std::deque<Waiting> queue_;  ///< the first may be under way
  pw_status failed_ = PW_OK;   ///< the first failure at this end since the last outcome(), and what it says
  std::string why_;
  std::atomic<pw_status> broken_{PW_OK};
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint64_t> moved_{0};    ///< how many are done at this end
  std::atomic<uint64_t> refused_{0};  ///< how many were refused here, which the other end does not know
};

}  // namespace pw
