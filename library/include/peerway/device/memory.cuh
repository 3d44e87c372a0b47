// Loads and stores of memory shared with other GPUs and the host, and the clock, for NVIDIA and AMD GPUs. The
// CPU versions let tests run the same device code without a GPU.
#ifndef PEERWAY_DEVICE_MEMORY_CUH
#define PEERWAY_DEVICE_MEMORY_CUH

#if defined(__HIP__)
#define PW_ON_AMD 1
#define PW_ON_DEVICE __device__ inline __attribute__((always_inline))
#define PW_UNROLL _Pragma("unroll")
#define PW_KERNEL_CONSTANT
#elif defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define PW_ON_NVIDIA 1
#define PW_ON_DEVICE __device__ __forceinline__
#define PW_UNROLL _Pragma("unroll")
#define PW_KERNEL_CONSTANT __grid_constant__
#else
#include <sched.h>
#include <time.h>
#define PW_ON_DEVICE inline
#define PW_UNROLL
#endif

namespace peerway::device {

using Word = unsigned long long;

/// A packet of 16 bytes: each half of the data shares 8 bytes with a flag, and every link carries 8 bytes
/// whole.
struct alignas(16) Packet {
  unsigned low, low_flag, high, high_flag;
};

/// Half a Packet, for words of at most 4 bytes.
struct alignas(8) SmallPacket {
  unsigned data, flag;
};

namespace detail {

#if defined(PW_ON_NVIDIA)

PW_ON_DEVICE Word load_relaxed(const Word* word) {
  Word value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
PW_ON_DEVICE Word load_acquire(const Word* word) {
  Word value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
PW_ON_DEVICE void store_relaxed(Word* word, Word value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
PW_ON_DEVICE void store_release(Word* word, Word value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// Orders all that this thread has stored or observed before what it stores next.
PW_ON_DEVICE void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
/// The same before what this thread stores next for threads of this GPU.
PW_ON_DEVICE void fence_on_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
PW_ON_DEVICE Word fetch_add(Word* word, Word by) {
  Word before;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(word), "l"(by)
               : "memory");
  return before;
}
/// Stores `value` if the word still holds `before`; returns whether it did.
PW_ON_DEVICE bool replace(Word* word, Word before, Word value) {
  Word previous;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(previous)
               : "l"(word), "l"(before), "l"(value)
               : "memory");
  return previous == before;
}
PW_ON_DEVICE void set_bits(Word* word, Word bits) {
  asm volatile("red.relaxed.gpu.global.or.b64 [%0], %1;" ::"l"(word), "l"(bits) : "memory");
}
PW_ON_DEVICE Word load_volatile(const Word* word) {
  Word value;
  asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
PW_ON_DEVICE void store_volatile(Word* word, Word value) {
  asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
PW_ON_DEVICE void store_packet(Packet* to, const Packet& packet) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(packet.low),
               "r"(packet.low_flag), "r"(packet.high), "r"(packet.high_flag)
               : "memory");
}
PW_ON_DEVICE void store_packet(SmallPacket* to, const SmallPacket& packet) {
  asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(packet.data), "r"(packet.flag)
               : "memory");
}
PW_ON_DEVICE Packet load_packet(const Packet* from) {
  Packet packet;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(packet.low), "=r"(packet.low_flag), "=r"(packet.high), "=r"(packet.high_flag)
               : "l"(from)
               : "memory");
  return packet;
}
PW_ON_DEVICE SmallPacket load_packet(const SmallPacket* from) {
  SmallPacket packet;
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];"
               : "=r"(packet.data), "=r"(packet.flag)
               : "l"(from)
               : "memory");
  return packet;
}
/// Returns nanoseconds. The clock has a coarse resolution; use it for timeouts only.
PW_ON_DEVICE Word clock_ns() {
  Word now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
PW_ON_DEVICE unsigned high_product(unsigned a, unsigned b) { return __umulhi(a, b); }

#elif defined(PW_ON_AMD)

// The memory model is that of LLVM's "User Guide for AMDGPU Backend": atomic operations of a scope order what
// other threads of that scope see, and the compiler emits the waits and cache operations of each processor.
// The memory must be fine-grained if other GPUs or the host store to it while a kernel runs; memory that
// Peerway allocates is.
PW_ON_DEVICE Word load_relaxed(const Word* word) {
  return __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
PW_ON_DEVICE Word load_acquire(const Word* word) {
  return __hip_atomic_load(word, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
PW_ON_DEVICE void store_relaxed(Word* word, Word value) {
  __hip_atomic_store(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
PW_ON_DEVICE void store_release(Word* word, Word value) {
  __hip_atomic_store(word, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
PW_ON_DEVICE void fence() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, ""); }
PW_ON_DEVICE void fence_on_gpu() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent"); }
PW_ON_DEVICE Word fetch_add(Word* word, Word by) {
  return __hip_atomic_fetch_add(word, by, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
}
PW_ON_DEVICE bool replace(Word* word, Word before, Word value) {
  return __hip_atomic_compare_exchange_strong(word, &before, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                              __HIP_MEMORY_SCOPE_AGENT);
}
PW_ON_DEVICE void set_bits(Word* word, Word bits) {
  __hip_atomic_fetch_or(word, bits, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// The model promises that 8 bytes arrive as a whole. Each half of a packet has its own flag.
PW_ON_DEVICE void store_packet(SmallPacket* to, const SmallPacket& packet) {
  store_relaxed(reinterpret_cast<Word*>(to), packet.data | static_cast<Word>(packet.flag) << 32);
}
PW_ON_DEVICE SmallPacket load_packet(const SmallPacket* from) {
  const Word both = load_relaxed(reinterpret_cast<const Word*>(from));
  return {static_cast<unsigned>(both), static_cast<unsigned>(both >> 32)};
}
PW_ON_DEVICE void store_packet(Packet* to, const Packet& packet) {
  auto* half = reinterpret_cast<SmallPacket*>(to);
  store_packet(half, SmallPacket{packet.low, packet.low_flag});
  store_packet(half + 1, SmallPacket{packet.high, packet.high_flag});
}
PW_ON_DEVICE Packet load_packet(const Packet* from) {
  const auto* half = reinterpret_cast<const SmallPacket*>(from);
  const SmallPacket low = load_packet(half), high = load_packet(half + 1);
  return {low.data, low.flag, high.data, high.flag};
}

/// Rate of the clock in kHz. The library passes what HIP says (hipDeviceAttributeWallClockRate).
#if !defined(PEERWAY_CLOCK_KHZ)
#define PEERWAY_CLOCK_KHZ 100000
#endif
PW_ON_DEVICE Word clock_ns() {
#if __has_builtin(__builtin_readsteadycounter)
  const Word ticks = __builtin_readsteadycounter();
#elif defined(__GFX11__) || defined(__GFX12__)
  const Word ticks = __builtin_amdgcn_s_sendmsg_rtnl(0x83);  // MSG_RTN_GET_REALTIME
#else
  const Word ticks = __builtin_amdgcn_s_memrealtime();
#endif
  constexpr Word khz = PEERWAY_CLOCK_KHZ;
  return ticks / khz * 1000000 + ticks % khz * 1000000 / khz;
}
PW_ON_DEVICE unsigned high_product(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<Word>(a) * b) >> 32);
}

#else

inline Word load_relaxed(const Word* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
inline Word load_acquire(const Word* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void store_relaxed(Word* word, Word value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }
inline void store_release(Word* word, Word value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
inline void fence() { __atomic_thread_fence(__ATOMIC_RELEASE); }
inline Word fetch_add(Word* word, Word by) { return __atomic_fetch_add(word, by, __ATOMIC_ACQ_REL); }
inline bool replace(Word* word, Word before, Word value) {
  return __atomic_compare_exchange_n(word, &before, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
inline void set_bits(Word* word, Word bits) { __atomic_fetch_or(word, bits, __ATOMIC_RELAXED); }
inline void store_packet(SmallPacket* to, const SmallPacket& packet) {
  __atomic_store_n(reinterpret_cast<Word*>(to), packet.data | Word{packet.flag} << 32, __ATOMIC_RELAXED);
}
inline SmallPacket load_packet(const SmallPacket* from) {
  const Word both = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
  return {static_cast<unsigned>(both), static_cast<unsigned>(both >> 32)};
}
inline void store_packet(Packet* to, const Packet& packet) {
  auto* half = reinterpret_cast<SmallPacket*>(to);
  store_packet(half, SmallPacket{packet.low, packet.low_flag});
  store_packet(half + 1, SmallPacket{packet.high, packet.high_flag});
}
inline Packet load_packet(const Packet* from) {
  const auto* half = reinterpret_cast<const SmallPacket*>(from);
  const SmallPacket low = load_packet(half), high = load_packet(half + 1);
  return {low.data, low.flag, high.data, high.flag};
}
inline Word clock_ns() {
  sched_yield();  // the caller usually waits, perhaps for a thread that needs this CPU
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Word>(now.tv_sec) * 1000000000u + static_cast<Word>(now.tv_nsec);
}
inline unsigned high_product(unsigned a, unsigned b) { return static_cast<unsigned>((Word{a} * b) >> 32); }

#endif

}  // namespace detail
}  // namespace peerway::device

#endif
