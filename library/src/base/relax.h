// A short pause for a thread that spins.
#pragma once

namespace pw {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace pw
