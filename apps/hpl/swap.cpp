#include "swap.h"

#include <unordered_map>

namespace hpl {

Permutation Permutation::of(int64_t first, const int64_t* pivots, int64_t count) {
  std::unordered_map<int64_t, int64_t> content;  // of the rows that have changed
  const auto in = [&](int64_t row) {
    const auto found = content.find(row);
    return found == content.end() ? row : found->second;
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t here = in(first + i), there = in(pivots[i]);
    content[first + i] = there;
    content[pivots[i]] = here;
  }
  Permutation made;
  for (int64_t i = 0; i < count; ++i) made.top.push_back(in(first + i));
  for (int64_t i = 0; i < count; ++i) {  // in the order of the pivots, so that all ranks agree
    const auto found = content.find(pivots[i]);
    if (pivots[i] < first + count || found == content.end()) continue;
    made.displaced.emplace_back(found->first, found->second);
    content.erase(found);
  }
  return made;
}

void Swap::prepare(int64_t first, const int64_t* pivots, int64_t count) {
  const Permutation all = Permutation::of(first, pivots, count);
  const Axis& rows = layout_.rows;
  holder_ = rows.owner(first);
  width_ = count;
  top_row_ = rows.local(first);
  shares_.assign(static_cast<size_t>(layout_.grid.rows), {});
  alone_ = {};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t source = all.top[static_cast<size_t>(i)];
    Share& share = shares_[static_cast<size_t>(rows.owner(source))];
    share.top.push_back(i);
    share.source.push_back(rows.local(source));
    if (source == first + i) continue;
    alone_.to.push_back(rows.local(first + i));
    alone_.from.push_back(rows.local(source));
  }
  for (const auto& [to, from] : all.displaced) {
    Share& share = shares_[static_cast<size_t>(rows.owner(to))];
    share.to.push_back(rows.local(to));
    share.from.push_back(rows.local(from));
    alone_.to.push_back(rows.local(to));
    alone_.from.push_back(rows.local(from));
  }
}

TopRows Swap::run(Queue queue, int64_t begin, int64_t end) {
  const int64_t n = end - begin, ld = layout_.ld;
  double* columns = a_ + begin * ld;
  if (layout_.grid.rows == 1) {
    device_.move_rows(queue, columns, ld, alone_, n);
    return {columns + top_row_, ld};
  }
  const int me = layout_.grid.row;
  const Share& mine = shares_[static_cast<size_t>(me)];
  const TopRows top =
      holder() ? TopRows{columns + top_row_, ld} : TopRows{top_ + begin * layout_.nb, layout_.nb};

  comm_.settle(Channel::swap);
  double* out = at(room_.first + 2 * room_.place);
  device_.gather_rows(queue, out, rows(mine.top), columns, ld, mine.source, n);
  double* displaced = out + rows(mine.top) * n;
  if (holder())
    for (const Share& share : shares_) {
      device_.gather_rows(queue, displaced, rows(share.to), columns, ld, share.from, n);
      displaced += rows(share.to) * n;
    }
  device_.wait(queue);
  messages(n);

  device_.scatter_rows(queue, top.values, top.ld, mine.top, out, rows(mine.top), n);
  displaced = out + rows(mine.top) * n;
  if (holder())
    for (int p = 0; p < me; ++p) displaced += rows(shares_[static_cast<size_t>(p)].to) * n;
  for (int p = 0; p < layout_.grid.rows; ++p) {
    if (p == me) continue;
    const Share& theirs = shares_[static_cast<size_t>(p)];
    const double* in = at(room_.first + static_cast<size_t>(turn_) * room_.place + offset(p, me, n));
    device_.scatter_rows(queue, top.values, top.ld, theirs.top, in, rows(theirs.top), n);
    if (p == holder_) displaced = const_cast<double*>(in) + rows(theirs.top) * n;
  }
  device_.scatter_rows(queue, columns, ld, mine.to, displaced, rows(mine.to), n);
  turn_ = 1 - turn_;
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

/// The rows of the top go to every rank of the column, displaced ones from the holder to their new owners.
void Swap::messages(int64_t n) {
  const Grid& grid = layout_.grid;
  const size_t in = room_.first + static_cast<size_t>(turn_) * room_.place;
  const size_t out = room_.first + 2 * room_.place;
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
    const size_t place = in + offset(p, grid.row, n);
    comm_.expect(rank, Channel::swap, place, bytes(theirs.top));
    if (p == holder_) comm_.expect(rank, Channel::swap, place + bytes(theirs.top), bytes(mine.to));
  });
  each_peer([&](int p, int rank, const Share& theirs) {
    const size_t place = in + offset(grid.row, p, n);
    comm_.send(rank, Channel::swap, out, place, bytes(mine.top));
    if (!holder()) return;
    size_t before = bytes(mine.top);
    for (int other = 0; other < p; ++other) before += bytes(shares_[static_cast<size_t>(other)].to);
    comm_.send(rank, Channel::swap, out + before, place + bytes(mine.top), bytes(theirs.to));
  });
  each_peer([&](int p, int rank, const Share&) {
    comm_.receive(rank, Channel::swap);
    if (p == holder_) comm_.receive(rank, Channel::swap);
  });
}

}  // namespace hpl
