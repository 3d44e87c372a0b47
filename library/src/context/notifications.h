// Notifies signals of other ranks. A notification may have to follow an operation, such as a put. If that is
// complete, the signal's word is stored at once; otherwise the notification is queued here, in order for each
// signal, and stored later. The thread that starts it never waits.
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

#include "transport/path.h"

namespace pw {

class Notifications final : public Source, public Marker {
 public:
  /// `far` finds the path that stores the words of signals on other hosts, and throws Error if there is none.
  Notifications(Team& team, Progress& progress, std::function<Path&(const Remote&)> far)
      : team_(team), progress_(progress), far_(std::move(far)) {}

  /// Notifies the signal after everything that was started on `path` towards the rank so far.
  pw_status after(Path& path, int rank, const Notification& notification);
  /// Notifies the signal after the marks are reached.
  pw_status after(Marks before, const Notification& notification);

  /// Reserves the signal for a plan or for kernels. Waits until all that this rank added to it has arrived.
  /// Until give_back(), every other notification of it by this rank is refused. Throws Error.
  void reserve(Remote& signal);
  static void give_back(Remote& signal);

  bool poll() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool work_is_announced() const override { return true; }
  [[nodiscard]] bool has_work() const override { return open_.load(std::memory_order_acquire) > 0; }

  /// Returns a mark after the notifications towards the rank that are queued here.
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override;
  pw_status outcome(int rank, Mark mark) override;
  [[nodiscard]] Source* source() override { return this; }

 private:
  /// The progress of a queued notification. At each stage it waits for the marks in `before`.
  enum class Stage : uint8_t {
    deferred,  ///< waits for the operation that it follows
    in_order,  ///< waits for an earlier notification of the signal by another path to arrive
    fetched,   ///< waits for the signal's present word, if it is not known what an earlier import added
    stored,    ///< waits for the store of the word to arrive
    arrived,
  };
  struct Deferred {
    std::shared_ptr<Remote> signal;
    uint64_t by;
    Path* path;  ///< the path that stores the word; null: the CPU does
    Marks before;
    uint64_t number;  ///< number among the notifications towards its rank
    Stage stage = Stage::deferred;
    std::shared_ptr<const uint64_t> fetched;
  };
  struct RankNotifications {   ///< the notifications towards one rank that were ever queued
    uint64_t deferred = 0;     ///< their number
    pw_status failed = PW_OK;  ///< the first failure since the last outcome(); `why` is its message
    std::string why;
  };

  void settle(Remote& signal);  ///< waits until all that this rank added to the signal has arrived
  pw_status make(SignalTurn& turn, Path* storing);
  pw_status notify(Marks before, const Notification& notification, Path* storing);
  void defer(SignalTurn& turn, Marks before, const Notification& notification, Path* storing);
  bool advance(Deferred& deferred);
  void forget(const std::vector<const Deferred*>& ended);
  pw_status enter_next(Deferred& deferred);
  pw_status store_word(const Deferred& deferred);
  void end(const Deferred& deferred, pw_status status);

  Team& team_;
  Progress& progress_;
  const std::function<Path&(const Remote&)> far_;
  std::mutex polling_;            ///< held by the thread that polls; lock it before the lock of a signal
  std::mutex mutex_;              ///< protects the members below; lock it after the lock of a signal
  std::list<Deferred> deferred_;  ///< the contents of an entry belong to the thread that polls
  std::map<int, RankNotifications> by_rank_;
  std::atomic<uint64_t> open_{0};    ///< number of entries
  std::atomic<bool> failed_{false};  ///< whether any notification has ever failed
  std::atomic<uint64_t> since_{0};   ///< ns: the time of the last change
};

}  // namespace pw
