// For tests: runs the panel's kernels on a CPU, each block as a thread, and a plain loop to compare with.
#ifndef HPL_PANEL_ON_CPU_H
#define HPL_PANEL_ON_CPU_H

#define FAKE_BLOCK_THREADS 64
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "block_on_cpu.h"

#define HPL_ON_CPU
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static thread_local  // of the block's thread, so of the block
using std::max;
using std::min;

static long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
static double __longlong_as_double(long long value) { return std::bit_cast<double>(value); }
template <typename T, typename Pick>
static T reduce(T value, Pick pick) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = pick(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}
template <typename T>
static T __reduce_max_sync(unsigned, T value) {
  return reduce(value, [](T a, T b) { return std::max(a, b); });
}
template <typename T>
static T __reduce_min_sync(unsigned, T value) {
  return reduce(value, [](T a, T b) { return std::min(a, b); });
}

static thread_local std::vector<double> memory;

namespace hpl {
constexpr int kLeafThreads = 64;
struct FlaggedValue;
static void store_flagged(FlaggedValue* to, double value, unsigned long long number);
static FlaggedValue look(const FlaggedValue* from);
static double* shared_memory() { return memory.data(); }
}  // namespace hpl

#include "panel_cuda.cuh"
#include "random.h"

namespace hpl {
static void store_flagged(FlaggedValue* to, double value, unsigned long long number) {
  __atomic_store(&to->value, &value, __ATOMIC_RELAXED);
  __atomic_store_n(&to->number, number, __ATOMIC_RELEASE);
}
static FlaggedValue look(const FlaggedValue* from) {
  std::this_thread::yield();
  FlaggedValue seen{};
  seen.number = __atomic_load_n(&from->number, __ATOMIC_ACQUIRE);
  __atomic_load(&from->value, &seen.value, __ATOMIC_RELAXED);
  return seen;
}
}  // namespace hpl

namespace on_cpu {

using Matrix = std::vector<double>;  // by columns
using Index = long long;

/// Runs a kernel: all its blocks at once, until all have ended.
template <typename Body>
void launch(int blocks, unsigned threads, Index doubles, Body body) {
  std::vector<std::thread> all;
  for (int block = 0; block < blocks; ++block)
    all.emplace_back([=]() mutable {
      memory.assign(size_t(doubles), 0);
      blockIdx.x = unsigned(block);
      gridDim.x = unsigned(blocks);
      blockDim.x = threads;
      fake_block::run([](void* self) { (*static_cast<Body*>(self))(); }, &body);
    });
  for (std::thread& thread : all) thread.join();
}

struct Case {
  int ranks;
  Index block, panel, rows, columns, leaf, share;
  std::string values;

  [[nodiscard]] Index first() const { return panel * block; }
  [[nodiscard]] hpl::Dealt dealt(int rank) const { return {block, ranks, rank}; }
  [[nodiscard]] int owner(Index row) const { return dealt(0).owner(first() + row); }
  [[nodiscard]] Matrix matrix() const {
    Matrix a(size_t(rows * columns));
    uint64_t x = hpl::kSeed;
    for (double& element : a) element = hpl::as_element(x), x = hpl::kStep(x);
    for (double& element : a) {
      if (values == "constant") element = 0.5;
      if (values == "signs") element = element < 0 ? -1 : 1;
      if (values == "nan") element = NAN;
    }
    if (!values.empty() && std::isdigit(values[0]))
      std::copy_n(a.begin(), rows, a.begin() + rows * std::stoll(values));
    return a;
  }
};

struct Factors {
  Matrix a;
  std::vector<Index> pivots;  // global rows
  Index info = 0;             // 1 + the global index of the first column whose pivot is zero
};

/// Among equal pivots it takes that of the first rank, and there the first row.
inline Factors plain(const Case& of) {
  Factors made{of.matrix(), {}, 0};
  const auto at = [&](Index i, Index j) -> double& { return made.a[size_t(j * of.rows + i)]; };
  for (Index k = 0; k < of.columns; ++k) {
    Index best = k;
    double most = -1;
    for (int rank = 0; rank < of.ranks; ++rank)
      for (Index i = k; i < of.rows; ++i)
        if (of.owner(i) == rank && std::abs(at(i, k)) > most) most = std::abs(at(i, k)), best = i;
    made.pivots.push_back(of.first() + best);
    for (Index j = 0; j < of.columns; ++j) std::swap(at(k, j), at(best, j));
    if (at(k, k) == 0) {
      if (made.info == 0) made.info = of.first() + k + 1;
      continue;
    }
    const double inverse = 1 / at(k, k);
    for (Index i = k + 1; i < of.rows; ++i) at(i, k) *= inverse;
    for (Index j = k + 1; j < of.columns; ++j)
      for (Index i = k + 1; i < of.rows; ++i) at(i, j) -= at(i, k) * at(k, j);
  }
  return made;
}

}  // namespace on_cpu

#endif
