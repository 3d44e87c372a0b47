// A bell wakes a thread that sleeps in poll(), of this process or, as a futex would, of another one.
#pragma once

#include <cstdint>

#include "base/descriptor.h"

namespace pw {

class Bell {
 public:
  /// A bell of this process. Throws Error.
  Bell();
  /// The bell of another process of this host, by its descriptor number there. Throws Error.
  Bell(int process, int number, uint64_t identity);

  void ring() const noexcept;
  /// To be called before a poll of what it may have rung for.
  void clear() const noexcept;

  [[nodiscard]] int descriptor() const { return pipe_.get(); }  ///< readable once it has rung
  [[nodiscard]] uint64_t identity() const;                      ///< by which others know that it is this one

 private:
  // A pipe, as another process can open that by /proc, and open for both: writing to a pipe that nobody can
  // read any more ends a process.
  Descriptor pipe_;
};

}  // namespace pw
