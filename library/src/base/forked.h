// Children of fork(). A child has a copy of its parent's teams and contexts but none of their threads, and
// what it did to memory and sockets that the two share would reach the parent. So in a child of a process
// that was in a team every call is refused, and what releases does nothing. A child that runs another program
// (exec) or whose parent was in no team is a process like any other.
#pragma once

#include <atomic>

namespace pw {

extern std::atomic<bool> is_forked_child;

inline bool in_forked_child() noexcept { return is_forked_child.load(std::memory_order_relaxed); }

/// Throws Error(PW_UNSUPPORTED) in such a child. `call` is what was called.
void refuse_in_forked_child(const char* call);

/// For as long as it lives, children of this process are such children.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
};

/// Deletes what a handle stands for. In a forked child it is the parent's, and stays.
template <typename Handle>
void release(Handle* handle) {
  if (!in_forked_child()) delete handle;
}

}  // namespace pw
