// Notifications of signals. A notification is made as soon as the operation that it follows is complete: at
// once if possible, else it waits here, in order for each signal. The thread that starts it never waits.
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
  /// `far` finds the path that stores the words of signals on other hosts; throws Error where there is none.
  Notifications(Team& team, Progress& progress, std::function<Path&(const Remote&)> far)
      : team_(team), progress_(progress), far_(std::move(far)) {}

  /// Notifies the signal after all that the path was given towards the rank so far.
  pw_status after(Path& path, int rank, const Notification& notification);
  /// The same after whatever the marks stand for.
  pw_status after(Marks before, const Notification& notification);

  /// Gives the signal to a plan or to kernels, once all that this rank added to it has arrived: until
  /// give_back() nobody else of this rank notifies it. Throws Error.
  void reserve(Remote& signal);
  static void give_back(Remote& signal);

  bool turn() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool rings() const override { return true; }
  [[nodiscard]] bool has_work() const override { return open_.load(std::memory_order_acquire) > 0; }

  /// A mark behind the notifications that wait here towards the rank.
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override;
  pw_status outcome(int rank, Mark mark) override;
  [[nodiscard]] Source* source() override { return this; }

 private:
  /// How far a notification is that could not be made at once. At each stage it waits for the marks of
  /// `before`.
  enum class Stage : uint8_t {
    deferred,  ///< until what it follows is complete
    in_line,   ///< until what was added to the signal before, on another path, is there
    fetched,   ///< until it is known how far an earlier import brought it
    stored,    ///< until the store is
    arrived,
  };
  struct Deferred {
    std::shared_ptr<Remote> signal;
    uint64_t by;
    Path* path;  ///< that stores the word; null: the CPU
    Marks before;
    uint64_t number;  ///< among those towards its rank
    Stage stage = Stage::deferred;
    std::shared_ptr<const uint64_t> fetched;
  };
  struct Line {  ///< towards one rank
    uint64_t deferred = 0;
    pw_status failed = PW_OK;  ///< the first since the last outcome(), and what it says
    std::string why;
  };

  void settle(Remote& signal);
  pw_status make(SignalTurn& turn, Path* by);
  pw_status notify(Marks before, const Notification& notification, Path* by);
  void defer(SignalTurn& turn, Marks before, const Notification& notification, Path* by);
  bool advance(Deferred& deferred);
  void forget(const std::vector<const Deferred*>& ended);
  pw_status enter_next(Deferred& deferred);
  pw_status store(const Deferred& deferred);
  void end(const Deferred& deferred, pw_status status);

  Team& team_;
  Progress& progress_;
  const std::function<Path&(const Remote&)> far_;
  std::mutex turning_;            ///< one thread at a time; before the lock of a signal
  std::mutex mutex_;              ///< protects what follows; after the lock of a signal
  std::list<Deferred> deferred_;  ///< an entry's contents belong to the thread that turns
  std::map<int, Line> lines_;
  std::atomic<uint64_t> open_{0};    ///< entries
  std::atomic<bool> failed_{false};  ///< some notification ever did
  std::atomic<uint64_t> since_{0};   ///< ns: when something happened last
};

}  // namespace pw
