// A doorbell: a pipe that wakes a thread which sleeps in poll(), in this process or in another one.
#pragma once

#include <cstdint>

#include "base/descriptor.h"

namespace pw {

class Bell {
 public:
  /// Makes a doorbell of this process. Throws Error.
  Bell();
  /// Opens the doorbell of a process on this host; `number` is the descriptor's number there. Throws Error.
  Bell(int process, int number, uint64_t identity);

  void ring() const noexcept;
  /// Call it before checking for the work that the doorbell announces.
  void clear() const noexcept;

  [[nodiscard]] int descriptor() const { return pipe_.get(); }  ///< readable once the doorbell was rung
  [[nodiscard]] uint64_t identity() const;  ///< identifies this doorbell to other processes

 private:
  // A pipe, because another process can open it through /proc. It is opened for reading and writing, because
  // writing to a pipe without readers ends a process.
  Descriptor pipe_;
};

}  // namespace pw
