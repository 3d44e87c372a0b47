#include "panel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "blas.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HPL_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HPL_EACH_CPU
#endif

namespace hpl {

namespace {

HPL_EACH_CPU double largest(const double* x, int64_t n) {
  double most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
  return most;
}

HPL_EACH_CPU void scale(double* x, int64_t n, double by) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= by;
}

/// Four columns at once, so that the first one is read only once for them.
HPL_EACH_CPU void minus_outer4(const double* x, const double* by, int64_t by_ld, double* y, int64_t ld,
                               int64_t n) {
  const double b0 = by[0], b1 = by[by_ld], b2 = by[2 * by_ld], b3 = by[3 * by_ld];
  double *y0 = y, *y1 = y + ld, *y2 = y + 2 * ld, *y3 = y + 3 * ld;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    y0[i] -= x[i] * b0;
    y1[i] -= x[i] * b1;
    y2[i] -= x[i] * b2;
    y3[i] -= x[i] * b3;
  }
}

HPL_EACH_CPU void minus_outer(const double* x, double by, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] -= x[i] * by;
}

/// The message of a rank for a column: the magnitude and the row of its candidate (-1: it has none), then the
/// candidate's row of the panel, then the present top row if this rank has that.
struct PivotMessage {
  double magnitude;
  int64_t row;
  double unused[6];
};

}  // namespace

void PanelFactorization::run(const Panel& panel) {
  panel_ = &panel;
  offset_ = layout_.rows.before(panel.first);
  row_.resize(static_cast<size_t>(panel.width));
  top_row_.resize(static_cast<size_t>(panel.width));
  panel.head()->info = 0;
  part(0, panel.width);
}

void PanelFactorization::part(int64_t begin, int64_t end) {
  if (end - begin <= leaf_) return columns(begin, end);
  const int64_t half = begin + (end - begin + 1) / 2;
  const int64_t middle = std::min(end, begin + (half - begin + leaf_ - 1) / leaf_ * leaf_);
  part(begin, middle);
  if (middle == end) return;
  const Panel& panel = *panel_;
  double* square = panel.square();
  double* right = square + middle * panel.width;
  blas().solve('L', middle - begin, end - middle, square + begin * panel.width + begin, panel.width,
               right + begin, panel.width);
  const int64_t from = active(middle);
  blas().minus_product(panel.rows - from, end - middle, middle - begin,
                       panel.body() + begin * panel.ld + from, panel.ld, right + begin, panel.width,
                       panel.body() + middle * panel.ld + from, panel.ld);
  part(middle, end);
}

void PanelFactorization::columns(int64_t begin, int64_t end) {
  const Panel& panel = *panel_;
  for (int64_t c = begin; c < end; ++c) {
    if (looking_ == Looking::left) solve_column(begin, c);
    if (looking_ != Looking::right) update_column(begin, c);
    pivot(c);
    if (looking_ == Looking::crout) update_row(begin, c, end);
    const double diagonal = panel.square()[c * panel.width + c];
    if (diagonal == 0) {
      if (panel.head()->info == 0) panel.head()->info = panel.first + c + 1;
      continue;
    }
    const int64_t from = active(c + 1);
    scale(panel.body() + c * panel.ld + from, panel.rows - from, 1 / diagonal);
    if (looking_ == Looking::right) update_behind(c, end);
  }
}

/// Computes the column's part of U, from the rows of L that the leaf has.
void PanelFactorization::solve_column(int64_t begin, int64_t column) {
  double* square = panel_->square();
  blas().solve('L', column - begin, 1, square + begin * panel_->width + begin, panel_->width,
               square + column * panel_->width + begin, panel_->width);
}

/// Subtracts from a column the updates of the leaf's earlier columns.
void PanelFactorization::update_column(int64_t begin, int64_t column) {
  const Panel& panel = *panel_;
  const int64_t from = active(column);
  blas().minus_vector(panel.rows - from, column - begin, panel.body() + begin * panel.ld + from, panel.ld,
                      panel.square() + column * panel.width + begin, panel.body() + column * panel.ld + from);
}

/// Subtracts them from the row of U that a pivot has brought.
void PanelFactorization::update_row(int64_t begin, int64_t row, int64_t end) {
  const int64_t width = panel_->width;
  double* square = panel_->square();
  for (int64_t j = row + 1; j < end; ++j)
    for (int64_t k = begin; k < row; ++k)
      square[j * width + row] -= square[k * width + row] * square[j * width + k];
}

/// Subtracts a column's update from the columns after it.
void PanelFactorization::update_behind(int64_t column, int64_t end) {
  const Panel& panel = *panel_;
  const int64_t from = active(column + 1), count = panel.rows - from;
  const double *l = panel.body() + column * panel.ld + from, *by = panel.square() + column;
  const auto body = [&](int64_t j) { return panel.body() + j * panel.ld + from; };
  int64_t j = column + 1;
  for (; j + 4 <= end; j += 4) minus_outer4(l, by + j * panel.width, panel.width, body(j), panel.ld, count);
  for (; j < end; ++j) minus_outer(l, by[j * panel.width], body(j), count);
}

void PanelFactorization::pivot(int64_t column) {
  Candidate best = best_here(column);
  const Panel& panel = *panel_;
  const double* old = nullptr;
  if (panel.top) {
    for (int64_t j = 0; j < panel.width; ++j)
      top_row_[static_cast<size_t>(j)] = panel.body()[j * panel.ld + column];
    old = top_row_.data();
  }
  if (layout_.grid.rows > 1) best = best_of_all(column, best, &old);
  take(column, best, old);
}

PanelFactorization::Candidate PanelFactorization::best_here(int64_t column) const {
  const Panel& panel = *panel_;
  const int64_t from = active(column), count = panel.rows - from;
  if (count <= 0) return {-1, -1, layout_.grid.row, nullptr};
  const double* x = panel.body() + column * panel.ld + from;
  const double most = largest(x, count);
  const double* found = std::find_if(x, x + count, [most](double value) { return std::abs(value) == most; });
  const int64_t row = from + (found == x + count ? 0 : found - x);  // all are NaN: any row will do
  double* values = const_cast<double*>(row_.data());
  for (int64_t j = 0; j < panel.width; ++j) values[j] = panel.body()[j * panel.ld + row];
  return {most, global_row(row), layout_.grid.row, values};
}

/// Sends one message to every rank of the column. A peer's next message of the same turn comes only after it
/// has received this rank's next message, so two places for each are enough.
PanelFactorization::Candidate PanelFactorization::best_of_all(int64_t column, Candidate best,
                                                              const double** old) {
  const Grid& grid = layout_.grid;
  const auto width = static_cast<size_t>(panel_->width);
  const size_t bytes = sizeof(PivotMessage) + 2 * width * sizeof(double);
  const int holder = static_cast<int>((panel_->first + column) / layout_.nb % grid.rows);
  comm_.settle(Channel::pivot);
  auto* message = reinterpret_cast<PivotMessage*>(pool_ + room_.sent(turn_));
  auto* rows = reinterpret_cast<double*>(message + 1);
  *message = {best.magnitude, best.row, {}};
  if (best.values != nullptr) std::copy_n(best.values, width, rows);
  if (*old != nullptr) std::copy_n(*old, width, rows + width);
  for (int p = 0; p < grid.rows; ++p)
    if (p != grid.row)
      comm_.expect(grid.rank(p, grid.column), Channel::pivot, room_.received(p, turn_), bytes);
  for (int p = 0; p < grid.rows; ++p)
    if (p != grid.row)
      comm_.send(grid.rank(p, grid.column), Channel::pivot, room_.sent(turn_),
                 room_.received(grid.row, turn_), bytes);
  for (int p = 0; p < grid.rows; ++p) {
    if (p == grid.row) continue;
    comm_.receive(grid.rank(p, grid.column), Channel::pivot);
    const auto* theirs = reinterpret_cast<const PivotMessage*>(pool_ + room_.received(p, turn_));
    const auto* values = reinterpret_cast<const double*>(theirs + 1);
    if (p == holder) *old = values + width;
    const bool better = theirs->row >= 0 && (best.row < 0 || theirs->magnitude > best.magnitude ||
                                             (theirs->magnitude == best.magnitude && theirs->row < best.row));
    if (better) best = {theirs->magnitude, theirs->row, p, values};
  }
  turn_ = 1 - turn_;
  return best;
}

/// The pivot's row becomes a row of the square, and the old top row takes its place.
void PanelFactorization::take(int64_t column, const Candidate& best, const double* old) {
  const Panel& panel = *panel_;
  panel.pivots()[column] = best.row;
  for (int64_t j = 0; j < panel.width; ++j) panel.square()[j * panel.width + column] = best.values[j];
  if (best.process != layout_.grid.row) return;
  const int64_t row = layout_.rows.local(best.row) - offset_;
  for (int64_t j = 0; j < panel.width; ++j) panel.body()[j * panel.ld + row] = old[j];
}

}  // namespace hpl
