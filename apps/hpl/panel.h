// The factorization of a panel by the ranks of one process column, on their CPUs.
#ifndef HPL_PANEL_H
#define HPL_PANEL_H

#include "comm.h"
#include "device.h"

namespace hpl {

/// The places of the pivot search's messages in the pool: two for each peer, used in turn, and two for
/// sending.
struct PivotRoom {
  size_t first;    // offset in the pool
  size_t message;  // bytes of one

  static size_t message_bytes(int64_t nb) { return sizeof(double) * static_cast<size_t>(2 * nb + 8); }
  static size_t bytes(int64_t nb, int peers) {
    return message_bytes(nb) * 2 * static_cast<size_t>(peers + 1);
  }
  [[nodiscard]] size_t sent(int turn) const { return first + message * static_cast<size_t>(turn); }
  [[nodiscard]] size_t received(int peer, int turn) const {
    return first + message * static_cast<size_t>(2 + 2 * peer + turn);
  }
};

/// When a column of a leaf gets the updates of earlier columns: just before its pivot is searched, including
/// its part of U (left) or with that part as soon as its row is there (Crout); or after each earlier column
/// (right). The recursion by halves above the leaves is the same for all three. The values are those of
/// HPL.dat.
enum class Looking { left = 0, crout = 1, right = 2 };

/// Recursive, with partial pivoting: columns are halved down to `leaf`, and for each pivot the ranks of the
/// column exchange its row once. `panel` is in host memory, `pool` is the memory of `comm`.
class PanelFactorization {
 public:
  PanelFactorization(Comm& comm, const Layout& layout, char* pool, PivotRoom room, int leaf, Looking looking)
      : comm_(comm), layout_(layout), pool_(pool), room_(room), leaf_(leaf), looking_(looking) {}
  void run(const Panel& panel);

 private:
  struct Candidate {
    double magnitude;
    int64_t row;  // global; -1: none
    int process;  // row of the grid
    const double* values;
  };
  void part(int64_t begin, int64_t end);
  void columns(int64_t begin, int64_t end);
  void solve_column(int64_t begin, int64_t column);
  void update_column(int64_t begin, int64_t column);
  void update_row(int64_t begin, int64_t row, int64_t end);
  void update_behind(int64_t column, int64_t end);
  void pivot(int64_t column);
  Candidate best_here(int64_t column) const;
  Candidate best_of_all(int64_t column, Candidate best, const double** old);
  void take(int64_t column, const Candidate& best, const double* old);
  [[nodiscard]] int64_t active(int64_t column) const { return panel_->top ? column : 0; }
  [[nodiscard]] int64_t global_row(int64_t row) const { return layout_.rows.global(offset_ + row); }

  Comm& comm_;
  const Layout& layout_;
  char* pool_;
  PivotRoom room_;
  int64_t leaf_;
  Looking looking_;
  const Panel* panel_ = nullptr;
  int64_t offset_ = 0;  // of the panel's first row in the local matrix
  int turn_ = 0;
  std::vector<double> row_, top_row_;
};

}  // namespace hpl

#endif
