// The kernels of the panel on a CPU, a block being a thread: panel_cuda_test ROWS COLUMNS LEAF SHARE
// [SINGULAR]. Blocked LU by them and by loops of its own beside a plain one: the pivots must be the same, the
// factors nearly.
#define FAKE_BLOCK_THREADS 64
#include <bit>
#include <cmath>
#include <thread>
#include <vector>

#include "block_on_cpu.h"

#define HPL_ON_CPU
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static thread_local  // of the block's thread, so of the block
using std::min;

static void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
template <typename T>
static T __ldcg(const T* from) {
  return *from;
}

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
struct Told;
static void tell(Told* to, double value, unsigned long long number);
static Told look(const Told* from);
static double* shared_memory() { return memory.data(); }
}  // namespace hpl

#include "panel_cuda.cuh"
#include "random.h"

namespace hpl {
static void tell(Told* to, double value, unsigned long long number) {
  __atomic_store(&to->value, &value, __ATOMIC_RELAXED);
  __atomic_store_n(&to->number, number, __ATOMIC_RELEASE);
}
static Told look(const Told* from) {
  std::this_thread::yield();
  Told told{};
  told.number = __atomic_load_n(&from->number, __ATOMIC_ACQUIRE);
  __atomic_load(&from->value, &told.value, __ATOMIC_RELAXED);
  return told;
}
}  // namespace hpl

namespace {

using Matrix = std::vector<double>;

template <typename Body>
void launch(unsigned blocks, unsigned threads, size_t doubles, Body body) {
  std::vector<std::thread> all;
  for (unsigned block = 0; block < blocks; ++block)
    all.emplace_back([=]() mutable {
      memory.assign(doubles, 0);
      blockIdx.x = block;
      gridDim.x = blocks;
      blockDim.x = threads;
      fake_block::run([](void* self) { (*static_cast<Body*>(self))(); }, &body);
    });
  for (std::thread& thread : all) thread.join();
}

/// Columns `begin` to `end` by elimination with the columns `from` to `to`, whose factors are there.
void eliminate(Matrix& a, size_t ld, size_t from, size_t to, size_t begin, size_t end) {
  for (size_t j = begin; j < end; ++j)
    for (size_t k = from; k < to; ++k)
      for (size_t i = k + 1; i < ld; ++i) a[j * ld + i] -= a[k * ld + i] * a[j * ld + k];
}

/// Gives info: 1 + the first column whose pivot is zero.
long long plain(Matrix& a, size_t rows, size_t columns, std::vector<long long>& pivots) {
  long long info = 0;
  for (size_t k = 0; k < columns; ++k) {
    size_t best = k;
    for (size_t i = k; i < rows; ++i)
      if (std::abs(a[k * rows + i]) > std::abs(a[k * rows + best])) best = i;
    pivots[k] = static_cast<long long>(best);
    for (size_t j = 0; j < columns; ++j) std::swap(a[j * rows + k], a[j * rows + best]);
    if (a[k * rows + k] == 0) {
      if (info == 0) info = static_cast<long long>(k) + 1;
      continue;
    }
    for (size_t i = k + 1; i < rows; ++i) a[k * rows + i] *= 1 / a[k * rows + k];
    eliminate(a, rows, k, k + 1, k + 1, columns);
  }
  return info;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const auto number = [&](int i) { return static_cast<size_t>(std::atol(argv[i])); };
  const size_t rows = number(1), columns = number(2), leaf = number(3), share = number(4);
  Matrix a(rows * columns);
  uint64_t x = hpl::kSeed;
  for (double& element : a) element = hpl::as_element(x), x = hpl::kStep(x);
  if (argc > 5)  // a column twice
    for (size_t i = 0; i < rows; ++i) a[number(5) * rows + i] = a[i];
  Matrix expected = a;
  std::vector<long long> pivots(columns), expected_pivots(columns);
  const long long expected_info = plain(expected, rows, columns, expected_pivots);

  std::vector<hpl::LeafMail> mail(2);
  long long info = 0;
  for (size_t begin = 0; begin < columns; begin += leaf) {
    const size_t width = std::min(leaf, columns - begin);
    const auto blocks = static_cast<unsigned>((rows - begin + share - 1) / share);
    const hpl::Leaf asked{a.data(),
                          static_cast<long long>(rows),
                          static_cast<long long>(rows),
                          int(begin),
                          int(width),
                          int(share),
                          pivots.data(),
                          0,
                          &info,
                          mail.data(),
                          begin + 1};
    launch(blocks, hpl::kLeafThreads, share * width, [=] { hpl::factorize_leaf(asked); });
    launch(3, 2 * hpl::kLeafColumns, 0, [=] { hpl::exchange_rows(asked, int(columns)); });
    eliminate(a, rows, begin, begin + width, begin + width, columns);
  }
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(a[i] - expected[i]));
  const bool same = pivots == expected_pivots;
  std::printf("pivots %s, largest difference %.1e, info %lld, expected %lld\n", same ? "the same" : "DIFFER",
              difference, info, expected_info);
  return same && difference < 1e-11 && info == expected_info ? 0 : 1;
}
