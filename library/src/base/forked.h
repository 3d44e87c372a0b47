// Children of fork(). A child has a copy of its parent's teams and contexts but none of their threads, and
// what it did to shared memory and sockets would affect the parent. So in a child of a process that was in a
// team or had a context every call is refused, and functions that free do nothing. A child that runs another
// program (exec), or whose parent had neither, is a normal process. A child that was made without the C
// library's fork (clone, _Fork) is not recognized: it must run another program or call nothing of Peerway.
#pragma once

#include <atomic>

namespace pw {

extern std::atomic<bool> is_forked_child;

inline bool in_forked_child() noexcept { return is_forked_child.load(std::memory_order_relaxed); }

/// Throws Error(PW_UNSUPPORTED) in such a child. `call` is the name of the called function.
void refuse_in_forked_child(const char* call);

/// While it exists, children of this process are such children.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
};

/// Deletes the object behind a handle. In a forked child the object is the parent's, so it is kept.
template <typename Handle>
void release(Handle* handle) {
  if (!in_forked_child()) delete handle;
}

}  // namespace pw
