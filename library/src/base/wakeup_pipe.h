// A pipe that wakes a thread that sleeps in poll(), in this process or in another process of the host.
#pragma once

#include <cstdint>

#include "base/descriptor.h"

namespace pw {

class WakeupPipe {
 public:
  /// Makes a pipe of this process. Throws Error.
  WakeupPipe();
  /// Opens the pipe of another process of this host, which has it as descriptor `number`. Throws Error, also
  /// if the descriptor is no longer the pipe with that identity().
  WakeupPipe(int process, int number, uint64_t identity);

  void wake() const noexcept;
  /// Call it after a wake(), before looking for what it was for.
  void clear() const noexcept;

  [[nodiscard]] int descriptor() const { return pipe_.get(); }  ///< readable after a wake()
  [[nodiscard]] uint64_t identity() const;                      ///< tells this pipe from a later one

 private:
  // A pipe and not an eventfd, because another process can open it by /proc. Open for reading and writing,
  // because writing to a pipe that nobody can read would end the process by a signal.
  Descriptor pipe_;
};

}  // namespace pw
