// The back substitution. Each rank keeps what its columns subtract from the right-hand side. The sums of a
// row of the grid are added at the owner of the diagonal block, which sends its part of x to the other ranks
// of its column.
#include <algorithm>
#include <chrono>

#include "system.h"

namespace hpl {

namespace {

class BackSubstitution {
 public:
  explicit BackSubstitution(System& system)
      : system_(system), comm_(system.comm), device_(system.device), layout_(system.layout) {}

  void run() {
    const Axis& columns = layout_.columns;
    std::fill_n(system_.y_host, layout_.ld, 0.0);
    const size_t bytes = sizeof(double) * static_cast<size_t>(layout_.rows.size());
    if (columns.owner(layout_.n) == layout_.grid.column)
      device_.copy(kMain, system_.y_host, system_.a + columns.local(layout_.n) * layout_.ld, bytes);
    device_.copy(kMain, system_.y, system_.y_host, bytes);
    for (int64_t k = layout_.blocks() - 1; k >= 0; --k) block(k);
    comm_.settle(Channel::solve);
    comm_.barrier();  // nobody reads any more what the next system writes
  }

 private:
  /// Every message of a run has a place of its own.
  [[nodiscard]] size_t place(int64_t k, int q) const {
    return system_.rooms.solve +
           sizeof(double) * static_cast<size_t>((k * layout_.grid.columns + q) * layout_.nb);
  }
  [[nodiscard]] double* at(size_t offset) const {
    return reinterpret_cast<double*>(system_.cpu_pool.memory + offset);
  }

  void block(int64_t k) {
    const Grid& grid = layout_.grid;
    const int64_t first = k * layout_.nb, width = std::min(layout_.nb, layout_.n - first);
    const int p = layout_.rows.owner(first), q = layout_.columns.owner(first);
    const size_t bytes = sizeof(double) * static_cast<size_t>(width);
    if (grid.row == p) {
      double* mine = at(place(k, grid.column));
      device_.copy(kMain, mine, system_.y + layout_.rows.local(first), bytes);
      if (grid.column != q)
        comm_.send(grid.rank(p, q), Channel::solve, place(k, grid.column), place(k, grid.column), bytes);
      else
        diagonal(k, first, width, bytes);
    }
    if (grid.column == q) column(k, first, width, p, bytes);
  }

  /// Computes x of the block: adds everything that was subtracted, and solves with the triangle.
  void diagonal(int64_t k, int64_t first, int64_t width, size_t bytes) {
    const Grid& grid = layout_.grid;
    double* sum = at(place(k, grid.column));
    for (int other = 0; other < grid.columns; ++other) {
      if (other == grid.column) continue;
      const int rank = grid.rank(grid.row, other);
      comm_.expect(rank, Channel::solve, place(k, other), bytes);
      comm_.receive(rank, Channel::solve);
      for (int64_t i = 0; i < width; ++i) sum[i] += at(place(k, other))[i];
    }
    double* x = system_.x + layout_.columns.local(first);
    device_.copy(kMain, x, sum, bytes);
    const double* block = system_.a + layout_.columns.local(first) * layout_.ld + layout_.rows.local(first);
    device_.solve_upper(width, block, layout_.ld, x);
    device_.copy(kMain, sum, x, bytes);
    for (int other = 0; other < grid.rows; ++other)
      if (other != grid.row)
        comm_.send(grid.rank(other, grid.column), Channel::solve, place(k, grid.column),
                   place(k, grid.column), bytes);
  }

  void column(int64_t k, int64_t first, int64_t width, int p, size_t bytes) {
    const Grid& grid = layout_.grid;
    const int64_t local = layout_.columns.local(first);
    double* part = at(place(k, grid.column));
    if (grid.row != p) {
      const int rank = grid.rank(p, grid.column);
      comm_.expect(rank, Channel::solve, place(k, grid.column), bytes);
      comm_.receive(rank, Channel::solve);
      device_.copy(kMain, system_.x + local, part, bytes);
    }
    std::copy_n(part, width, system_.x_host + local);
    device_.gemv(layout_.rows.before(first), width, system_.a + local * layout_.ld, layout_.ld,
                 system_.x + local, system_.y);
  }

  System& system_;
  Comm& comm_;
  Device& device_;
  const Layout& layout_;
};

}  // namespace

void System::solve(Phases& phases) {
  const auto began = std::chrono::steady_clock::now();
  BackSubstitution(*this).run();
  phases.solve += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace hpl
