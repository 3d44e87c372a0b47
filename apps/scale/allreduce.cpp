// Sums over all ranks: by rings, one for each dimension of the grid of ranks, and by recursive doubling.
#include "job.h"
#include "post.h"

namespace scale {

namespace {

namespace s4u = simgrid::s4u;

/// Returns the contribution of a rank to a block: arbitrary, so that a sum that misses one rank or has it
/// twice is wrong.
uint64_t contribution(size_t rank, size_t block) {
  uint64_t x = (rank << 32 | block) + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Values contributions(size_t rank, size_t first, size_t count) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) values[i] = contribution(rank, first + i);
  return values;
}

Values sums(size_t ranks, size_t count) {
  Values values(count);
  for (size_t rank = 0; rank < ranks; ++rank)
    for (size_t i = 0; i < count; ++i) values[i] += contribution(rank, i);
  return values;
}

/// Blocks from `first` on; a block stands for bytes / blocks bytes of the vector.
struct Range {
  size_t first, count;
  Range piece(size_t i, size_t of) const { return {first + count / of * i, count / of}; }
};

/// A rank's position in the ring through it, in one direction of one dimension.
struct Ring {
  size_t size, at;
  Lane next, previous;
};

/// A rank's share of one part of the vector; its rings use the dimensions in this part's order.
class Part {
 public:
  Part(Values values, double bytes_of_block, std::vector<Ring> rings)
      : values_(std::move(values)), bytes_of_block_(bytes_of_block), rings_(std::move(rings)) {}

  void open(const s4u::ActorPtr& actor) {
    for (Ring& ring : rings_) ring.previous.open(actor);
  }

  /// After each ring a rank has the sum of one piece; the next dimension's ring sums that piece further.
  const Values& reduce() {
    std::vector<Range> ranges{{0, values_.size()}};
    for (Ring& ring : rings_) ranges.push_back(reduce_scatter(ring, ranges.back()));
    for (size_t i = rings_.size(); i-- > 0;) all_gather(rings_[i], ranges[i]);
    return values_;
  }

 private:
  Range reduce_scatter(Ring& ring, Range range) {
    for (size_t step = 0; step + 1 < ring.size; ++step) {
      const auto piece = [&](size_t back) {
        return range.piece((ring.at + ring.size - back) % ring.size, ring.size);
      };
      pass(ring, piece(step), piece(step + 1), true);
    }
    return range.piece((ring.at + 1) % ring.size, ring.size);
  }

  void all_gather(Ring& ring, Range range) {
    for (size_t step = 0; step + 1 < ring.size; ++step) {
      const auto piece = [&](size_t back) {
        return range.piece((ring.at + 1 + ring.size - back) % ring.size, ring.size);
      };
      pass(ring, piece(step), piece(step + 1), false);
    }
  }

  void pass(Ring& ring, Range out, Range in, bool add) {
    const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(out.first);
    const auto bytes = static_cast<uint64_t>(bytes_of_block_ * static_cast<double>(out.count) + 0.5);
    const s4u::CommPtr sent =
        ring.next.put(bytes, Values(begin, begin + static_cast<std::ptrdiff_t>(out.count)));
    const Values came = ring.previous.wait();
    for (size_t i = 0; i < in.count; ++i) {
      uint64_t& mine = values_[in.first + i];
      mine = add ? mine + came.at(i) : came.at(i);
    }
    sent->wait();
  }

  Values values_;
  double bytes_of_block_;
  std::vector<Ring> rings_;
};

/// Part p begins with dimension p / 2, and goes forward or backward: with two parts per dimension each link
/// is used by one part at a time.
std::vector<Ring> rings_of(size_t rank, const Extents& grid, size_t part) {
  std::vector<Ring> rings;
  const bool forward = part % 2 == 0;
  for (size_t i = 0; i < grid.size(); ++i) {
    const size_t dim = (part / 2 + i) % grid.size();
    if (grid[dim] == 1) continue;
    const size_t at = coordinates(rank, grid)[dim];
    const auto lane = [&](size_t from) {
      return Lane("ring" + std::to_string(part) + "." + std::to_string(dim) + "." + std::to_string(from));
    };
    rings.push_back({grid[dim], forward ? at : grid[dim] - 1 - at, lane(rank),
                     lane(neighbour(rank, grid, dim, !forward))});
  }
  return rings;
}

}  // namespace

Result allreduce_rings(s4u::Engine& engine, const Job& job, uint64_t bytes) {
  Result result;
  const size_t ranks = job.host_of.size();
  const Values right = sums(ranks, ranks * job.parts);
  const double bytes_of_block = static_cast<double>(bytes) / static_cast<double>(right.size());
  result.us = timed(engine, [&] {
    for (size_t rank = 0; rank < ranks; ++rank)
      for (size_t p = 0; p < job.parts; ++p) {
        auto part = std::make_shared<Part>(contributions(rank, p * ranks, ranks), bytes_of_block,
                                           rings_of(rank, job.grid, p));
        part->open(s4u::Actor::create("rank", job.host_of[rank], [&, part, p] {
          const Values& sum = part->reduce();
          const auto wanted = right.begin() + static_cast<std::ptrdiff_t>(p * ranks);
          if (!std::equal(sum.begin(), sum.end(), wanted)) result.right = false;
        }));
      }
  });
  return result;
}

Result allreduce_doubling(s4u::Engine& engine, const Job& job, uint64_t bytes) {
  Result result;
  const size_t ranks = job.host_of.size();
  if ((ranks & (ranks - 1)) != 0) throw std::runtime_error("scale: doubling needs a power of two of ranks.");
  const Values right = sums(ranks, 1);
  const auto lane = [](size_t from, size_t bit) {
    return Lane("doubling" + std::to_string(bit) + "." + std::to_string(from));
  };
  result.us = timed(engine, [&] {
    for (size_t rank = 0; rank < ranks; ++rank) {
      const s4u::ActorPtr actor = s4u::Actor::create("rank", job.host_of[rank], [&, rank] {
        uint64_t sum = contribution(rank, 0);
        for (size_t bit = 1; bit < ranks; bit *= 2) {
          const s4u::CommPtr sent = lane(rank, bit).put(bytes, {sum});
          sum += lane(rank ^ bit, bit).wait().at(0);
          sent->wait();
        }
        if (sum != right[0]) result.right = false;
      });
      for (size_t bit = 1; bit < ranks; bit *= 2) lane(rank ^ bit, bit).open(actor);
    }
  });
  return result;
}

}  // namespace scale
