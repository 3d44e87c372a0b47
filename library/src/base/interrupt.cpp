#include "base/interrupt.h"

#include "base/format.h"
#include "base/status.h"

namespace pw {

constinit thread_local InterruptCheck interrupt_check;

pw_status fail_interrupted(const char* awaited) noexcept {
  return catch_errors([&] {
    return fail(PW_INTERRUPTED, format("waiting for {} was interrupted by this program", awaited));
  });
}

}  // namespace pw

void pw_set_interrupt_check(int (*check)(void* user), void* user) { pw::interrupt_check = {check, user}; }
