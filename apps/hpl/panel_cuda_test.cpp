// The kernels of the panel on a CPU, a rank of the process column and each block of its GPU being a thread:
// panel_cuda_test RANKS BLOCK PANEL ROWS COLUMNS LEAF SHARE [VALUES]. Panel number PANEL of a matrix in
// blocks of BLOCK rows has ROWS rows. Blocked LU by the kernels and by loops of its own beside a plain one:
// the pivots must be the same, the factors nearly. VALUES: the number of a column that is there twice, or
// "constant", "signs" (1 and -1, many candidates as good), "nan".
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

using Matrix = std::vector<double>;  // by columns
using Index = long long;

/// A kernel: its blocks at once, until all have ended.
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

/// Of pivots that are as good, that of the first rank, and then the first row.
Factors plain(const Case& of) {
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

/// A rank with its part of the panel.
class Rank {
 public:
  Rank(const Case& of, int rank, const Matrix& a)
      : of_(of),
        square_(size_t(of.columns * of.columns), NAN),
        pivots_(size_t(of.columns)),
        room_((sizeof(hpl::LeafRoom) + size_t(of.columns) * hpl::kMovedBytes) / sizeof(hpl::Told)) {
    const hpl::Dealt dealt = of.dealt(rank);
    while (dealt.global(before_) < of.first()) ++before_;
    for (Index i = 0; i < of.rows; ++i)
      if (of.owner(i) == rank) ++count_;
    ld_ = count_ + 3;
    body_.resize(size_t(ld_ * of.columns));
    for (Index j = 0; j < of.columns; ++j)
      for (Index i = 0; i < count_; ++i)
        body_[size_t(j * ld_ + i)] = a[size_t(j * of.rows + dealt.global(before_ + i) - of.first())];
    leaf_.rows = dealt;
    leaf_.square = square_.data(), leaf_.body = body_.data();
    leaf_.ld = ld_, leaf_.count = count_, leaf_.before = before_, leaf_.first = of.first();
    leaf_.pivots = pivots_.data(), leaf_.info = &info_;
    leaf_.panel_width = int(of.columns), leaf_.top = of.owner(0), leaf_.share = int(of.share);
  }
  void join(std::vector<Rank>& all) {
    for (size_t p = 0; p < all.size(); ++p)
      leaf_.room[p] = reinterpret_cast<hpl::LeafRoom*>(all[p].room_.data());
  }
  [[nodiscard]] Index active(Index column) const { return leaf_.is_top() ? column : 0; }
  [[nodiscard]] Index left(Index column) const { return count_ - active(column); }

  /// As a stream does: nothing waits for other ranks but the kernels. `most[i]`: the most rows of a rank that
  /// leaf number i has.
  void factorize(const std::vector<Index>& most) {
    for (Index begin = 0, i = 0; begin < of_.columns; begin += of_.leaf, ++i) {
      leaf_.column = int(begin), leaf_.width = int(std::min(of_.leaf, of_.columns - begin));
      leaf_.number = unsigned(begin) + 1;
      const auto blocks = int((most[size_t(i)] + of_.share - 1) / of_.share);
      const hpl::Leaf asked = leaf_;
      launch(blocks, hpl::kLeafThreads, of_.share * leaf_.width, [=] { hpl::factorize_leaf(asked); });
      launch(3, 2 * hpl::kLeafColumns, 0, [=] { hpl::exchange_rows(asked); });
      eliminate();
    }
  }
  /// Adds what is here to the factors of all; those of the top are the same at all ranks, to the bit.
  void give(Factors& all, bool& same) const {
    const auto put = [&](Index row, Index j, double value) { all.a[size_t(j * of_.rows + row)] = value; };
    same = same && (all.pivots.empty() || (all.pivots == pivots_ && all.info == info_));
    all.pivots = pivots_, all.info = info_;
    for (Index j = 0; j < of_.columns; ++j) {
      for (Index i = 0; i < of_.columns; ++i) {
        const double value = square_[size_t(j * of_.columns + i)], old = all.a[size_t(j * of_.rows + i)];
        same = same && (leaf_.rows.mine == 0 || std::bit_cast<Index>(old) == std::bit_cast<Index>(value));
        put(i, j, value);
      }
      for (Index i = active(of_.columns); i < count_; ++i)
        put(leaf_.rows.global(before_ + i) - of_.first(), j, body_[size_t(j * ld_ + i)]);
    }
  }

 private:
  /// The columns behind the leaf.
  void eliminate() {
    const Index begin = leaf_.column, end = begin + leaf_.width, width = of_.columns;
    for (Index j = end; j < width; ++j)
      for (Index k = begin; k < end; ++k) {
        const double by = square_[size_t(j * width + k)];
        for (Index i = k + 1; i < end; ++i)
          square_[size_t(j * width + i)] -= square_[size_t(k * width + i)] * by;
        for (Index i = active(end); i < count_; ++i)
          body_[size_t(j * ld_ + i)] -= body_[size_t(k * ld_ + i)] * by;
      }
  }

  const Case& of_;
  Index before_ = 0, count_ = 0, ld_ = 0, info_ = 0;
  Matrix square_, body_;
  std::vector<Index> pivots_;
  std::vector<hpl::Told> room_;
  hpl::Leaf leaf_{};
};

Factors by_kernels(const Case& of, bool& same) {
  const Matrix a = of.matrix();
  std::vector<Rank> ranks;
  ranks.reserve(size_t(of.ranks));
  for (int rank = 0; rank < of.ranks; ++rank) ranks.emplace_back(of, rank, a);
  std::vector<Index> most;
  for (Index begin = 0; begin < of.columns; begin += of.leaf) {
    most.push_back(0);
    for (const Rank& rank : ranks) most.back() = std::max(most.back(), rank.left(begin));
  }
  for (Rank& rank : ranks) rank.join(ranks);
  std::vector<std::thread> streams;
  for (Rank& rank : ranks) streams.emplace_back([&] { rank.factorize(most); });
  for (std::thread& stream : streams) stream.join();
  Factors made{Matrix(a.size()), {}, 0};
  for (const Rank& rank : ranks) rank.give(made, same);
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) return 2;
  const auto number = [&](int i) { return std::atoll(argv[i]); };
  const Case asked{int(number(1)), number(2), number(3), number(4),
                   number(5),      number(6), number(7), argc > 8 ? argv[8] : ""};
  const Factors expected = plain(asked);
  bool alike = true;
  const Factors found = by_kernels(asked, alike);
  double difference = 0;
  for (size_t i = 0; i < found.a.size(); ++i) {
    const bool lost = std::isnan(found.a[i]) != std::isnan(expected.a[i]);
    difference = std::max(difference, lost ? INFINITY : std::abs(found.a[i] - expected.a[i]));
  }
  const bool same = found.pivots == expected.pivots;
  std::printf("pivots %s, ranks %s, largest difference %.1e, info %lld, expected %lld\n",
              same ? "the same" : "DIFFER", alike ? "alike" : "DIFFER", difference, found.info,
              expected.info);
  return same && alike && difference < 1e-11 && found.info == expected.info ? 0 : 1;
}
