// The parts of CUDA C++ that kernels use, for a CPU. Hundreds of kernels are compiled with this header, so it
// includes little: <algorithm> and <memory> would take four times as long as a kernel, the special functions
// of <cmath> as long as one. Nothing here needs the C++ library's binary, which takes longest to link.
#pragma once

#include <cstddef>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // of libstdc++: what <cmath> would bring <bits/specfun.h> for
#include <bit>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "block_on_cpu.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __constant__ static
#define __shared__ static
#define __launch_bounds__(...)

// A GPU's compiler would trust the condition; here it is checked.
#define __builtin_assume(condition) \
  if (!(condition)) std::abort()

template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}

inline void __syncwarp(unsigned = ~0u) {}
inline void __threadfence() {}
inline void __threadfence_system() {}
template <class T>
T __ldg(const T* address) {
  return *address;
}
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
template <class T, class U>
T atomicAdd(T* address, U value) {
  const T before = *address;
  *address = T(before + T(value));
  return before;
}
template <class T>
T atomicCAS(T* address, T seen, T wanted) {
  const T before = *address;
  if (before == seen) *address = wanted;
  return before;
}

#define PWX_WAIT_FOR_WARP_ON_CPU() fake_block::wait_for_warp()
/// Called where a kernel waits for the launch before it; the fake driver sets it.
extern "C" __attribute__((visibility("default"))) void (*fake_wait)() = nullptr;
#define PWX_WAIT_ON_CPU() (fake_wait != nullptr ? fake_block::wait_for_launch(fake_wait) : void())
/// Called by each thread of a kernel that can overlap a reflect: whether it does so now.
extern "C" __attribute__((visibility("default"))) void (*fake_begin)(bool overlaps) = nullptr;
#define PWX_BEGIN_ON_CPU(overlaps) (fake_begin != nullptr ? fake_begin(overlaps) : void())

/// Called by assert() of a kernel.
[[noreturn]] inline void __assertfail(const char* is_true, const char* file, unsigned line,
                                      const char* function, size_t) {
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s` failed.\n", file, line, function, is_true);
  std::_Exit(1);
}

template <class... Arguments, size_t... Number>
void fake_call(void (*kernel)(Arguments...), void** arguments, std::index_sequence<Number...>) {
  kernel(*static_cast<std::remove_const_t<Arguments>*>(arguments[Number])...);
}

template <class... Arguments>
struct FakeCall {
  void (*kernel)(Arguments...);
  void** arguments;
  static void run(void* self) {
    const auto& call = *static_cast<FakeCall*>(self);
    fake_call(call.kernel, call.arguments, std::index_sequence_for<Arguments...>{});
  }
};

/// A copy of a launch's argument.
template <class T>
void* fake_copy(const void* argument) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::memcpy(std::malloc(sizeof(T)), argument, sizeof(T));
}

/// Copies of a launch's arguments.
template <class... Arguments>
void** fake_keep(void (*)(Arguments...), void** arguments) {
  return [&]<size_t... Number>(std::index_sequence<Number...>) {
    const auto copies = static_cast<void**>(std::malloc((sizeof...(Number) + 1) * sizeof(void*)));
    ((copies[Number] = fake_copy<Arguments>(arguments[Number])), ...);
    return copies;
  }(std::index_sequence_for<Arguments...>{});
}

template <class... Arguments>
void fake_run(void (*kernel)(Arguments...), void** arguments, FakeGrid grid, unsigned threads) {
  FakeCall<Arguments...> call{kernel, arguments};
  gridDim = grid;
  blockDim.x = min(threads, fake_block::kMostThreads);
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
        fake_block::run(&FakeCall<Arguments...>::run, &call);
}
