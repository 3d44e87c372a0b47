// Wakes a thread of this process that sleeps in poll(). base/wakeup_pipe.h also wakes other processes.
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>

#include "base/descriptor.h"
#include "base/status.h"

namespace pw {

class Wakeup {
 public:
  Wakeup() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!event_) throw Error(PW_SYSTEM, "no event descriptor can be opened" + errno_text(errno));
  }
  void notify() const { ::eventfd_write(event_.get(), 1); }
  void clear() const {
    eventfd_t ignored;
    ::eventfd_read(event_.get(), &ignored);
  }
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  Descriptor event_;
};

}  // namespace pw
