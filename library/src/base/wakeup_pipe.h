// A pipe that wakes a thread that sleeps in poll(), of this process or, as a futex would, of another one.
#pragma once

#include <cstdint>

#include "base/descriptor.h"

namespace pw {

class WakeupPipe {
 public:
  /// One of this process. Throws Error.
  WakeupPipe();
  /// That of a process of this host, by the number of its descriptor there. Throws Error.
  WakeupPipe(int process, int number, uint64_t identity);

  void wake() const noexcept;
  /// To be called before a poll of what it may have woken this thread for.
  void clear() const noexcept;

  [[nodiscard]] int descriptor() const { return pipe_.get(); }  ///< readable after a wake()
  [[nodiscard]] uint64_t identity() const;                      ///< by which others know that it is this one

 private:
  // A pipe, as another process can open that by /proc, and open for both: writing to a pipe that nobody can
  // read any more ends a process.
  Descriptor pipe_;
};

}  // namespace pw
