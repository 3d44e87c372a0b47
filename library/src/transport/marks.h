// Marks: points in the order of started operations. A Marker gives marks; Marks polls those of several
// markers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/waiting.h"
#include "progress/mark.h"
#include "progress/source.h"

namespace pw {

/// Base of everything that operations towards ranks are given to. The operations progress by themselves or
/// through a source. No function of a marker waits.
class Marker {
 public:
  virtual ~Marker() = default;

  /// Returns a mark after all that was started towards the rank so far; 0: all of it is complete. From now on
  /// the marker makes sure that the mark is reached, as long as its source is polled.
  virtual Mark mark(int) { return 0; }
  /// Returns whether everything before the mark is complete at both ends or has failed. Operations that
  /// cannot complete any more fail when their rank is lost or the context closes; a device finishes its
  /// copies first.
  virtual bool reached(int, Mark) { return true; }
  /// For a mark that is reached: returns PW_OK, or the first failure before it, with the message. Each
  /// failure is reported once.
  virtual pw_status outcome(int, Mark) { return PW_OK; }
  /// The source of progress towards its marks, or null.
  [[nodiscard]] virtual Source* source() { return nullptr; }
  /// Whether reaching a mark always wakes this rank's threads.
  [[nodiscard]] virtual Wakes wakes(int) { return Wakes::perhaps; }
};

class Marks {
 public:
  /// Adds a mark after everything that the marker was given towards the rank so far. Does not wait.
  void add(Marker& marker, int rank);

  /// Returns whether all of it is complete at both ends or has failed.
  bool reached();

  /// Call it once reached() has returned true: returns PW_OK, or the first failure, with its message. Clears
  /// the marks. Calls `failed` for every failure with its rank, while its message is this thread's last.
  template <typename Failed>
  pw_status outcome(Failed&& failed) {
    pw_status first = PW_OK;
    std::string message;
    for (const Entry& entry : all_) {
      const pw_status status = entry.marker->outcome(entry.rank, entry.mark);
      if (status == PW_OK) continue;
      failed(entry.rank, status);
      if (first != PW_OK) continue;
      first = status;
      message = last_error_message();
    }
    all_.clear();
    reached_ = 0;
    return first == PW_OK ? PW_OK : fail(first, std::move(message));
  }
  pw_status outcome() {
    return outcome([](int, pw_status) {});
  }

  /// The rank of the first mark that is not reached yet, and the source that makes progress towards it, or
  /// null.
  [[nodiscard]] int rank() const { return open() ? all_[reached_].rank : -1; }
  [[nodiscard]] Source* source() const;
  /// Whether everything still awaited wakes this rank's threads.
  [[nodiscard]] Wakes wakes() const;

 private:
  struct Entry {
    Marker* marker;
    int rank;
    Mark mark;
  };
  [[nodiscard]] bool open() const { return reached_ < all_.size(); }

  std::vector<Entry> all_;
  size_t reached_ = 0;  ///< number of leading entries that are reached
};

}  // namespace pw
