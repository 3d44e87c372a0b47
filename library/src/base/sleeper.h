// Lets a thread sleep until another thread, of this or another process, reports a change: the basis of the
// wait policy `blocking`. A thread that changes something calls wake() afterwards. While nobody sleeps, that
// costs one load of a cached line, and no fence.
#pragma once

#include <atomic>
#include <cstdint>

namespace pw {

/// Where the threads of one rank sleep. It may lie in shared memory; zeros mean that nobody sleeps.
struct alignas(64) Sleepers {
  std::atomic<uint32_t> count;   ///< threads that sleep or are about to
  std::atomic<uint32_t> woken;   ///< futex: changed by every wake
  std::atomic<uint32_t> unseen;  ///< not 0: something that cannot wake threads writes to this rank, too, such
                                 ///< as a GPU or a NIC
};

namespace detail {
/// Whether the waker must order its store before its load of `count` itself. Otherwise the sleeper does that
/// for all wakers.
extern std::atomic<bool> wakers_order;
void wake_all(Sleepers& sleepers);
}  // namespace detail

/// Lets sleepers do the memory ordering for this process's threads, if the kernel supports it (membarrier).
/// Call it before the first wake.
void let_sleepers_order();

/// Wakes all sleeping threads; call it after the change that they wait for.
inline void wake(Sleepers& sleepers) {
  // Either the sleeper must see the change, or the waker must see the sleeper. For that, the store of the
  // change must come before the load here. A read-modify-write of the count orders them; without it the
  // compiler must keep the order, and the sleeper makes the CPUs keep it.
  uint32_t count = 0;
  if (detail::wakers_order.load(std::memory_order_relaxed)) {
    count = sleepers.count.fetch_add(0, std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    count = sleepers.count.load(std::memory_order_relaxed);
  }
  if (count != 0) [[unlikely]]
    detail::wake_all(sleepers);
}

/// One thread's sleep: while this object exists, no wake() is missed.
///
///     Sleeper sleeper(where);
///     for (;;) {
///       const uint32_t seen = sleeper.seen();
///       if (done()) break;
///       sleeper.sleep(seen, longest_ns);
///     }
class Sleeper {
 public:
  explicit Sleeper(Sleepers& where);
  ~Sleeper() { where_.count.fetch_sub(1, std::memory_order_relaxed); }
  Sleeper(const Sleeper&) = delete;

  /// Call it before each check of the awaited condition.
  [[nodiscard]] uint32_t seen() const { return where_.woken.load(std::memory_order_seq_cst); }

  /// Sleeps until a wake that came after `seen`, for at most `longest_ns`; returns false if that time has
  /// passed.
  bool sleep(uint32_t seen, uint64_t longest_ns) const;

 private:
  Sleepers& where_;
};

}  // namespace pw
