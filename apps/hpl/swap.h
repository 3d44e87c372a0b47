// The row exchanges that a factorized panel requires in the other columns, all at once: which row goes to
// which place, and the messages within a process column.
#ifndef HPL_SWAP_H
#define HPL_SWAP_H

#include <cstdint>
#include <utility>
#include <vector>

#include "comm.h"
#include "device.h"
#include "grid.h"

namespace hpl {

/// The total effect of a sequence of interchanges of the rows first + i and pivots[i].
struct Permutation {
  std::vector<int64_t> top;                            // the row that comes to first + i
  std::vector<std::pair<int64_t, int64_t>> displaced;  // (to, from): rows of the top that go below it
  /// `content` has an entry for each row of the matrix, equal to the row itself, before and after the call.
  static Permutation of(int64_t first, const int64_t* pivots, int64_t count, std::vector<int64_t>& content);
};

/// The places of the messages of a queue's exchanges in the pool: two for incoming messages, used in turn,
/// and one for outgoing ones, each for up to 2 NB rows of the columns of an exchange.
struct SwapRoom {
  size_t first, place;
  static constexpr int kPlaces = 3;
};
/// For the queues kAhead and kRows, which exchange rows.
struct SwapRooms {
  SwapRoom ahead, rows;
  size_t bytes;  // of both together
  /// Lays them out in the pool from `first` on, for exchanges of at most `widest` columns.
  static SwapRooms of(const Layout& layout, int64_t widest, size_t first);
};

class Swap {
 public:
  /// `top` must hold NB rows of all local columns.
  Swap(Comm& comm, Device& device, const Layout& layout, double* a, char* pool, const SwapRooms& rooms,
       double* top);

  /// Prepares the exchanges for the panel whose first row is `first`.
  void prepare(int64_t first, const int64_t* pivots, int64_t count);
  /// Exchanges the rows of the local columns `begin` to `end`, in the queue kAhead or kRows. Returns where
  /// the rows of the top are afterwards.
  TopRows run(Queue queue, int64_t begin, int64_t end);
  /// Returns where the rows of U of the columns from `begin` on must be: in the matrix if its top is here.
  [[nodiscard]] TopRows place_of_u(int64_t begin) const {
    if (holder()) return {a_ + begin * layout_.ld + top_row_, layout_.ld};
    return {top_ + begin * layout_.nb, layout_.nb};
  }

 private:
  struct Share {
    std::vector<int64_t> top, source;  // index in the top; local row of its content at the owner
    std::vector<int64_t> to, from;     // displaced rows: local row at the owner, local row of its content
  };
  /// The places of a queue's current exchange.
  struct Places {
    size_t in, out;
  };
  Places places(Queue queue);
  void messages(const Places& places, int64_t n);
  [[nodiscard]] bool holder() const { return layout_.grid.row == holder_; }
  [[nodiscard]] static int64_t rows(const std::vector<int64_t>& list) { return int64_t(list.size()); }
  /// Returns the bytes before the share of `from` in what comes to `to`.
  [[nodiscard]] size_t offset(int from, int to, int64_t n) const;
  [[nodiscard]] double* at(size_t offset) const { return reinterpret_cast<double*>(pool_ + offset); }

  Comm& comm_;
  Device& device_;
  const Layout& layout_;
  double* a_;
  char* pool_;
  SwapRooms rooms_;
  double* top_;
  std::vector<int64_t> content_;
  size_t turns_[kQueues] = {};
  int holder_ = 0;  // the row of the grid that has the top
  int64_t width_ = 0, top_row_ = 0;
  std::vector<Share> shares_;  // for each row of the grid
  Moves alone_;                // for a column of one rank
};

}  // namespace hpl

#endif
