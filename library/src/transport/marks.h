// Marker, which gives marks; and Marks, those of several markers as one object to be polled or waited for.
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

/// Something that is given operations towards ranks, which go on by themselves or by a source. Nothing in it
/// waits.
class Marker {
 public:
  virtual ~Marker() = default;

  /// A mark behind all that was started towards the rank so far; 0: all of it is complete. From here on the
  /// marker sees to it that it is reached, as far as its source is turned.
  virtual Mark mark(int) { return 0; }
  /// Whether all before the mark is complete at both ends, or has failed: because the rank was lost, because
  /// the context was closed, or in itself.
  virtual bool reached(int, Mark) { return true; }
  /// For a mark that is reached: PW_OK, or the first failure before it, with the message. Each failure is
  /// reported once.
  virtual pw_status outcome(int, Mark) { return PW_OK; }
  /// The source that brings its marks, if there is one.
  [[nodiscard]] virtual Source* source() { return nullptr; }
  /// Whether this rank's threads are woken when a mark is reached.
  [[nodiscard]] virtual Wakes wakes(int) { return Wakes::perhaps; }
};

class Marks {
 public:
  /// Adds what the marker was given towards the rank so far. Nothing waits.
  void add(Marker& marker, int rank);

  /// Whether all of it is complete at both ends, or has failed.
  bool reached();

  /// Once reached() has said so: PW_OK, or the first failure, with its message. Clears the marks. `failed` is
  /// called of every failure, with the rank, while its message is the thread's last.
  template <typename Failed>
  pw_status outcome(Failed&& failed) {
    pw_status first = PW_OK;
    std::string message;
    for (const Entry& entry : all_) {
      const pw_status status = entry.of->outcome(entry.rank, entry.mark);
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

  /// The first that is not reached yet: its rank, and the source that brings it, if any.
  [[nodiscard]] int rank() const { return open() ? all_[reached_].rank : -1; }
  [[nodiscard]] Source* source() const;
  /// Whether all that is waited for wakes this rank's threads.
  [[nodiscard]] Wakes wakes() const;

 private:
  struct Entry {
    Marker* of;
    int rank;
    Mark mark;
  };
  [[nodiscard]] bool open() const { return reached_ < all_.size(); }

  std::vector<Entry> all_;
  size_t reached_ = 0;  ///< how many are reached, from the first on
};

}  // namespace pw
