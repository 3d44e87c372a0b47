#include "swap.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hpl {

Permutation Permutation::of(int64_t first, const int64_t* pivots, int64_t count,
                            std::vector<int64_t>& content) {
  const auto in = [&](int64_t row) -> int64_t& { return content[static_cast<size_t>(row)]; };
  for (int64_t i = 0; i < count; ++i) std::swap(in(first + i), in(pivots[i]));
  Permutation made;
  for (int64_t i = 0; i < count; ++i) made.top.push_back(std::exchange(in(first + i), first + i));
  for (int64_t i = 0; i < count; ++i) {  // in the order of the pivots, so that all ranks agree
    const int64_t row = pivots[i];
    if (row < first + count || in(row) == row) continue;
    made.displaced.emplace_back(row, std::exchange(in(row), row));
  }
  return made;
}

SwapRooms SwapRooms::of(const Layout& layout, int64_t widest, size_t first) {
  if (layout.grid.rows == 1) return {{first, 0}, {first, 0}, 0};
  const int64_t most = layout.columns.before(layout.columns.count, 0);  // rank 0 has the most columns
  const auto place = [&](int64_t columns) {
    return sizeof(double) * static_cast<size_t>(2 * layout.nb * std::min(columns, most));
  };
  const SwapRoom ahead{first, place(layout.nb)};
  const SwapRoom rows{first + SwapRoom::kPlaces * ahead.place, place(widest)};
  return {ahead, rows, SwapRoom::kPlaces * (ahead.place + rows.place)};
}

Swap::Swap(Comm& comm, Device& device, const Layout& layout, double* a, char* pool, const SwapRooms& rooms,
           double* top)
    : comm_(comm),
      device_(device),
      layout_(layout),
      a_(a),
      pool_(pool),
      rooms_(rooms),
      top_(top),
      content_(static_cast<size_t>(layout.n)) {
  std::iota(content_.begin(), content_.end(), int64_t{0});
}

void Swap::prepare(int64_t first, const int64_t* pivots, int64_t count) {
  const Permutation all = Permutation::of(first, pivots, count, content_);
  const Axis& rows = layout_.rows;
  holder_ = rows.owner(first);
  width_ = count;
  top_row_ = rows.local(first);
  shares_.assign(static_cast<size_t>(layout_.grid.rows), {});
  alone_ = {top_row_, {}, {}, {}};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t source = all.top[static_cast<size_t>(i)];
    Share& share = shares_[static_cast<size_t>(rows.owner(source))];
    share.top.push_back(i);
    share.source.push_back(rows.local(source));
    alone_.top.push_back(rows.local(source));
  }
  for (const auto& [to, from] : all.displaced) {
    Share& share = shares_[static_cast<size_t>(rows.owner(to))];
    share.to.push_back(rows.local(to));
    share.from.push_back(rows.local(from));
    alone_.to.push_back(rows.local(to));
    alone_.from.push_back(rows.local(from));
  }
  if (layout_.grid.rows == 1) device_.take_moves(alone_);
}

// A queue reads what has arrived before it gathers what it sends next, and a peer sends only after it has
// received that. So one of the two places of a queue is free. The queues do not wait for each other.
Swap::Places Swap::places(Queue queue) {
  const SwapRoom& room = queue == kAhead ? rooms_.ahead : rooms_.rows;
  const size_t turn = turns_[queue]++ % 2;
  return {room.first + turn * room.place, room.first + 2 * room.place};
}

TopRows Swap::run(Queue queue, int64_t begin, int64_t end) {
  const int64_t n = end - begin, ld = layout_.ld;
  double* columns = a_ + begin * ld;
  if (layout_.grid.rows == 1) return device_.move_rows(queue, columns, ld, n);
  const int me = layout_.grid.row;
  const Share& mine = shares_[static_cast<size_t>(me)];
  const TopRows top = place_of_u(begin);

  comm_.settle(Channel::swap);
  const Places places = this->places(queue);
  double* out = at(places.out);
  device_.gather_rows(queue, out, rows(mine.top), columns, ld, mine.source, n);
  double* displaced = out + rows(mine.top) * n;
  if (holder())
    for (const Share& share : shares_) {
      device_.gather_rows(queue, displaced, rows(share.to), columns, ld, share.from, n);
      displaced += rows(share.to) * n;
    }
  device_.wait(queue);
  messages(places, n);

  device_.scatter_rows(queue, top.values, top.ld, mine.top, out, rows(mine.top), n);
  displaced = out + rows(mine.top) * n;
  if (holder())
    for (int p = 0; p < me; ++p) displaced += rows(shares_[static_cast<size_t>(p)].to) * n;
  for (int p = 0; p < layout_.grid.rows; ++p) {
    if (p == me) continue;
    const Share& theirs = shares_[static_cast<size_t>(p)];
    const double* in = at(places.in + offset(p, me, n));
    device_.scatter_rows(queue, top.values, top.ld, theirs.top, in, rows(theirs.top), n);
    if (p == holder_) displaced = const_cast<double*>(in) + rows(theirs.top) * n;
  }
  device_.scatter_rows(queue, columns, ld, mine.to, displaced, rows(mine.to), n);
  return top;
}

size_t Swap::offset(int from, int to, int64_t n) const {
  int64_t before = 0;
  for (int p = 0; p < from; ++p) {
    if (p == to) continue;
    before += rows(shares_[static_cast<size_t>(p)].top);
    if (p == holder_) before += rows(shares_[static_cast<size_t>(to)].to);
  }
  return sizeof(double) * static_cast<size_t>(before * n);
}

/// Sends the rows of the top to every rank of the column, and displaced rows from the holder to their new
/// owners.
void Swap::messages(const Places& places, int64_t n) {
  const Grid& grid = layout_.grid;
  const auto bytes = [n](const std::vector<int64_t>& list) {
    return sizeof(double) * list.size() * size_t(n);
  };
  const auto& mine = shares_[static_cast<size_t>(grid.row)];
  const auto each_peer = [&](auto&& act) {
    for (int step = 1; step < grid.rows; ++step) {
      const int p = (grid.row + step) % grid.rows;
      act(p, grid.rank(p, grid.column), shares_[static_cast<size_t>(p)]);
    }
  };
  each_peer([&](int p, int rank, const Share& theirs) {
    const size_t place = places.in + offset(p, grid.row, n);
    comm_.expect(rank, Channel::swap, place, bytes(theirs.top));
    if (p == holder_) comm_.expect(rank, Channel::swap, place + bytes(theirs.top), bytes(mine.to));
  });
  each_peer([&](int p, int rank, const Share& theirs) {
    const size_t place = places.in + offset(grid.row, p, n);
    comm_.send(rank, Channel::swap, places.out, place, bytes(mine.top));
    if (!holder()) return;
    size_t before = bytes(mine.top);
    for (int other = 0; other < p; ++other) before += bytes(shares_[static_cast<size_t>(other)].to);
    comm_.send(rank, Channel::swap, places.out + before, place + bytes(mine.top), bytes(theirs.to));
  });
  each_peer([&](int p, int rank, const Share&) {
    comm_.receive(rank, Channel::swap);
    if (p == holder_) comm_.receive(rank, Channel::swap);
  });
}

}  // namespace hpl
