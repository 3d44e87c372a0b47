// Ten regions of a clock that steps back by a second in the fifth: stepping_clock.
#define PEERWAY_TRACE_NO_TSC
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "peerway/trace.hpp"

static long stepped = 0;

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  time->tv_sec -= stepped;
  return static_cast<int>(result);
}

int main() {
  for (int i = 0; i < 10; ++i) {
    const peerway::trace::Region region("region");
    if (i == 4) stepped = 1;
  }
  return 0;
}
