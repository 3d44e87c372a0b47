#include "base/sleeper.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace pw {

constinit std::atomic<bool> detail::wakers_order{true};

void detail::wake_all(Sleepers& sleepers) {
  sleepers.woken.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &sleepers.woken, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void let_sleepers_order() {
  static const bool registered = [] {
    const bool can = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    if (can) detail::wakers_order.store(false, std::memory_order_relaxed);
    return can;
  }();
  static_cast<void>(registered);
}

// The barrier covers all CPUs that run a registered process. If the kernel does not support it for this
// process, it does not for the others either (ranks of a host share the kernel), and then wakers do the
// ordering.
Sleeper::Sleeper(Sleepers& where) : where_(where) {
  where_.count.fetch_add(1, std::memory_order_seq_cst);
  if (!detail::wakers_order.load(std::memory_order_relaxed))
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

bool Sleeper::sleep(uint32_t seen, uint64_t longest_ns) const {
  constexpr uint64_t kSecond = 1'000'000'000;
  const timespec limit{static_cast<time_t>(longest_ns / kSecond), static_cast<long>(longest_ns % kSecond)};
  return syscall(SYS_futex, &where_.woken, FUTEX_WAIT, seen, &limit, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

}  // namespace pw
