// The row exchanges that a factorized panel asks of the other columns, all at once: which row comes to which
// place, and the messages within a process column.
#ifndef HPL_SWAP_H
#define HPL_SWAP_H

#include <cstdint>
#include <utility>
#include <vector>

#include "comm.h"
#include "device.h"
#include "grid.h"

namespace hpl {

/// What a sequence of interchanges of the rows first + i and pivots[i] does in all.
struct Permutation {
  std::vector<int64_t> top;                            // the row that comes to first + i
  std::vector<std::pair<int64_t, int64_t>> displaced;  // (to, from): rows of the top that go below it
  static Permutation of(int64_t first, const int64_t* pivots, int64_t count);
};

/// Where the messages of the exchange lie in the pool: two places of those that come, by turns, and one of
/// those that go. Each has up to 2 NB rows of this rank's columns.
struct SwapRoom {
  size_t first, place;
  static size_t place_bytes(const Layout& layout) {
    const int64_t most = layout.columns.before(layout.columns.count, 0);  // rank 0 has the most columns
    return sizeof(double) * static_cast<size_t>(2 * layout.nb * most);
  }
  static size_t bytes(const Layout& layout) { return layout.grid.rows == 1 ? 0 : 3 * place_bytes(layout); }
};

/// The top rows of the columns after the exchange.
struct TopRows {
  double* values;
  int64_t ld;
};

class Swap {
 public:
  /// `top` has room for NB rows of all local columns.
  Swap(Comm& comm, Device& device, const Layout& layout, double* a, char* pool, SwapRoom room, double* top)
      : comm_(comm), device_(device), layout_(layout), a_(a), pool_(pool), room_(room), top_(top) {}

  /// Of the panel whose first row is `first`.
  void prepare(int64_t first, const int64_t* pivots, int64_t count);
  /// Exchanges the rows of the local columns `begin` to `end`.
  TopRows run(Queue queue, int64_t begin, int64_t end);

 private:
  struct Share {
    std::vector<int64_t> top, source;  // index in the top; local row of its content at the owner
    std::vector<int64_t> to, from;     // displaced rows: local row at the owner, local row of its content
  };
  void messages(int64_t n);
  [[nodiscard]] bool holder() const { return layout_.grid.row == holder_; }
  [[nodiscard]] static int64_t rows(const std::vector<int64_t>& list) { return int64_t(list.size()); }
  /// Bytes before the share of `from` among what comes to `to`.
  [[nodiscard]] size_t offset(int from, int to, int64_t n) const;
  [[nodiscard]] double* at(size_t offset) const { return reinterpret_cast<double*>(pool_ + offset); }

  Comm& comm_;
  Device& device_;
  const Layout& layout_;
  double* a_;
  char* pool_;
  SwapRoom room_;
  double* top_;
  int turn_ = 0;
  int holder_ = 0;  // the row of the grid that has the top
  int64_t width_ = 0, top_row_ = 0;
  std::vector<Share> shares_;  // of each row of the grid
  Moves alone_;                // of a column of one rank
};

}  // namespace hpl

#endif
