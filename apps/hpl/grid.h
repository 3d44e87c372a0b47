// The distribution: blocks of NB x NB, dealt out in turn to the P x Q ranks in both dimensions.
#ifndef HPL_GRID_H
#define HPL_GRID_H

#include <algorithm>
#include <cstdint>

namespace hpl {

/// One dimension for one rank: `count` rows or columns in blocks of `block`; this is rank `mine` of `ranks`.
struct Axis {
  int64_t count, block;
  int ranks, mine;

  [[nodiscard]] int owner(int64_t global) const { return static_cast<int>(global / block % ranks); }
  /// Returns the index at the owner.
  [[nodiscard]] int64_t local(int64_t global) const {
    return global / block / ranks * block + global % block;
  }
  [[nodiscard]] int64_t global(int64_t local) const {
    return (local / block * ranks + mine) * block + local % block;
  }
  /// Returns how many of the first `global` indices a rank owns, which is also the local index of its first
  /// one from there on.
  [[nodiscard]] int64_t before(int64_t global, int rank) const {
    const int64_t blocks = global / block;
    const int64_t whole = blocks / ranks * block;
    const int64_t extra = blocks % ranks;
    return whole + (rank < extra ? block : rank == extra ? global % block : 0);
  }
  [[nodiscard]] int64_t before(int64_t global) const { return before(global, mine); }
  [[nodiscard]] int64_t size() const { return before(count); }
};

struct Grid {
  int rows, columns;  // P and Q
  int row, column;    // this rank's
  bool by_rows;       // PMAP: ranks go along the rows first

  static Grid of(int rows, int columns, int rank, bool by_rows) {
    return by_rows ? Grid{rows, columns, rank / columns, rank % columns, true}
                   : Grid{rows, columns, rank % rows, rank / rows, false};
  }
  [[nodiscard]] int rank(int p, int q) const { return by_rows ? p * columns + q : q * rows + p; }
};

/// The matrix [A b] of N rows and N + 1 columns.
struct Layout {
  Grid grid;
  int64_t n, nb;
  Axis rows, columns;
  int64_t ld;  // of the local part, which is stored by columns

  static Layout of(const Grid& grid, int64_t n, int64_t nb) {
    Layout made{grid, n, nb, {n, nb, grid.rows, grid.row}, {n + 1, nb, grid.columns, grid.column}, 0};
    made.ld = padded(made.rows.size());
    return made;
  }
  /// Rounds up to a multiple of 8, for aligned loads, but not of 512, so that columns do not share cache
  /// sets.
  static int64_t padded(int64_t rows) {
    const int64_t even = std::max<int64_t>((rows + 7) / 8 * 8, 8);
    return even % 512 == 0 ? even + 8 : even;
  }
  [[nodiscard]] int64_t blocks() const { return (n + nb - 1) / nb; }
};

}  // namespace hpl

#endif
