// Runs the panel's kernels on a CPU; each rank of the process column and each block of its GPU is a thread:
// panel_cuda_test RANKS BLOCK PANEL ROWS COLUMNS LEAF SHARE [VALUES]. Panel number PANEL of a matrix in
// blocks of BLOCK rows has ROWS rows. Compares blocked LU by the kernels and this test's loops with a plain
// loop: the pivots must be the same, the factors nearly. VALUES: the number of a column that appears twice,
// or "constant", "signs" (1 and -1, many equal candidates), "nan".
#include "panel_on_cpu.h"

using namespace on_cpu;

namespace {

/// A rank with its part of the panel.
class Rank {
 public:
  Rank(const Case& of, int rank, const Matrix& a)
      : of_(of),
        square_(size_t(of.columns * of.columns), NAN),
        pivots_(size_t(of.columns)),
        room_((sizeof(hpl::LeafRoom) + size_t(of.columns) * hpl::kMovedBytes) / sizeof(hpl::FlaggedValue)) {
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

  /// Works like a stream: only the kernels wait for other ranks. `most[i]` is the largest number of rows that
  /// a rank has in leaf number i.
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
  /// Adds this rank's factors to those of all; those of the top must be bitwise the same at all ranks.
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
  /// Updates the columns after the leaf.
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
  std::vector<hpl::FlaggedValue> room_;
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
