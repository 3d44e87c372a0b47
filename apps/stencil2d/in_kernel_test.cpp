// The persistent stencil with threads of the CPU in the place of a GPU's: ranks, blocks and warps of a
// few threads each, all in one process. Prints what it checked; ends with status 1 when a field is wrong.
#include <sched.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "field.h"
#include "persistent.cuh"

namespace stencil {

namespace {

constexpr unsigned kWarpThreads = 4;

/// What the threads of a block share.
struct BlockState {
  BlockState(unsigned threads, const Persistent& work)
      : turn(threads), shared(shared_doubles(work.rows, work.nx)) {
    for (unsigned i = 0; i < threads; i += kWarpThreads)
      warps.push_back(std::make_unique<std::barrier<>>(kWarpThreads));
  }
  std::barrier<> turn;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  std::atomic<unsigned> failed{0};
  std::vector<double> shared;
};

/// What the kernel asks of CUDA.
class Threads {
 public:
  static constexpr unsigned kWarp = kWarpThreads;
  Threads(unsigned block, unsigned index, unsigned count, BlockState& state)
      : block_(block), index_(index), count_(count), state_(state) {}
  unsigned block() const { return block_; }
  unsigned index() const { return index_; }
  unsigned count() const { return count_; }
  bool any(bool yes) const {
    if (yes) state_.failed = 1;
    state_.turn.arrive_and_wait();
    return state_.failed != 0;
  }
  void sync_warp() const { state_.warps[index_ / kWarp]->arrive_and_wait(); }
  void pause() const { sched_yield(); }

 private:
  unsigned block_, index_, count_;
  BlockState& state_;
};

struct Case {
  uint64_t global[2];
  int grid[2];
  bool periodic;
  unsigned rows, threads;
  uint64_t steps;
};

constexpr Case kCases[] = {
    {{5, 6}, {1, 1}, false, 2, 8, 7}, {{5, 6}, {1, 1}, true, 2, 4, 8},   {{4, 4}, {1, 1}, true, 1, 4, 6},
    {{9, 10}, {2, 2}, true, 2, 4, 6}, {{9, 11}, {2, 2}, false, 3, 8, 5}, {{12, 5}, {3, 1}, true, 2, 4, 5},
    {{3, 9}, {1, 3}, true, 1, 4, 6},  {{7, 13}, {1, 2}, false, 7, 4, 6},
};

/// Slots for what comes from the north, the south, the west and the east, in this order; two turns each.
size_t edge_slots(const Lattice& lattice) { return 4 * (lattice.count[Y] + lattice.count[X]); }

size_t edge_offset(const Lattice& lattice, Dim dim, Side side) {
  const size_t before = dim == X ? 4 * lattice.count[X] : 0;
  return before + (side == After ? 2 * lattice.count[dim == Y ? X : Y] : 0);
}

/// One rank of a case: its arrays, its slots, its share of the work.
struct Rank {
  Rank(const Case& c, int rank)
      : lattice(make_lattice(c.global, c.grid, c.periodic, rank)), slots(edge_slots(lattice)) {
    const unsigned blocks = static_cast<unsigned>((lattice.count[Y] + c.rows - 1) / c.rows);
    inner.resize(blocks * 4 * lattice.count[X]);
    field = Modes(lattice).after(0);
    result.resize(field.size());
  }
  Lattice lattice;
  std::vector<Packet> slots, inner;
  std::vector<double> field, result;
  std::vector<Word> marks;
  Persistent work{};
};

class Run {
 public:
  explicit Run(const Case& c) : case_(c) {
    for (int rank = 0; rank < c.grid[Y] * c.grid[X]; ++rank)
      ranks_.push_back(std::make_unique<Rank>(c, rank));
    for (const auto& rank : ranks_) describe(*rank);
  }

  /// Two launches, the second from where the first ended.
  void run() {
    launch(0, case_.steps);
    for (const auto& rank : ranks_) rank->field = rank->result;
    launch(case_.steps, case_.steps);
  }

  /// Cells that are not the same bits as in a serial run.
  int differing(uint64_t steps) const {
    const Lattice whole = make_lattice(case_.global, {1, 1}, case_.periodic, 0);
    const std::vector<double> start = Modes(whole).after(0);
    std::vector<double> serial;
    for (uint64_t y = 0; y < whole.count[Y]; ++y)
      for (uint64_t x = 0; x < whole.count[X]; ++x) serial.push_back(start[(y + 1) * whole.pitch() + x + 1]);
    run_serially(serial, case_.global, case_.periodic, steps);
    int wrong = 0;
    for (const auto& rank : ranks_) {
      const Lattice& part = rank->lattice;
      for (uint64_t y = 0; y < part.count[Y]; ++y)
        for (uint64_t x = 0; x < part.count[X]; ++x)
          wrong += rank->result[(y + 1) * part.pitch() + x + 1] !=
                           serial[(part.first[Y] + y) * whole.global[X] + part.first[X] + x]
                       ? 1
                       : 0;
    }
    return wrong;
  }

  /// Cuts one way between ranks: what was waited for there never comes.
  void cut() { ranks_[0]->work.south.out = nullptr; }
  void set_timeout(uint64_t ns) {
    for (const auto& rank : ranks_) rank->work.guard.timeout_ns = ns;
  }
  bool timed_out() const { return (report_ & 0xff) == 2; }

 private:
  void describe(Rank& rank) {
    const Lattice& lattice = rank.lattice;
    Persistent& work = rank.work;
    work.pitch = lattice.pitch();
    work.ny = static_cast<unsigned>(lattice.count[Y]);
    work.nx = static_cast<unsigned>(lattice.count[X]);
    work.rows = case_.rows;
    work.north = lane(rank, Y, Before);
    work.south = lane(rank, Y, After);
    work.west = lane(rank, X, Before);
    work.east = lane(rank, X, After);
    work.inner = rank.inner.data();
    work.flag = 1;
    work.batch = 1;
    work.guard = {&stop_, &report_, &polled_, 60'000'000'000u};
  }

  Lane lane(Rank& rank, Dim dim, Side side) const {
    const int number = rank.lattice.neighbour(dim, side);
    if (number < 0) return {nullptr, nullptr, 0, -1};
    Rank& there = *ranks_[static_cast<size_t>(number)];
    const Side opposite = side == Before ? After : Before;
    const auto turn = static_cast<unsigned>(rank.lattice.count[dim == Y ? X : Y]);
    return {there.slots.data() + edge_offset(there.lattice, dim, opposite),
            rank.slots.data() + edge_offset(rank.lattice, dim, side), turn, number};
  }

  void launch(uint64_t done, uint64_t steps) {
    std::vector<std::unique_ptr<BlockState>> blocks;
    std::vector<std::thread> threads;
    for (const auto& rank : ranks_) {
      Persistent& work = rank->work;
      work.flag = static_cast<unsigned>(1 + done);
      work.steps = steps;
      work.from = rank->field.data();
      work.to = rank->result.data();
      rank->marks.assign(steps + 1, 0);
      work.marks = rank->marks.data();
      for (unsigned block = 0; block * work.rows < work.ny; ++block) {
        blocks.push_back(std::make_unique<BlockState>(case_.threads, work));
        for (unsigned i = 0; i < case_.threads; ++i)
          threads.emplace_back([&work, block, i, count = case_.threads, state = blocks.back().get()] {
            const Threads self(block, i, count, *state);
            Worker<Threads>(work, self, state->shared.data()).run();
          });
      }
    }
    for (std::thread& thread : threads) thread.join();
  }

  const Case& case_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  Word stop_ = 0, report_ = 0, polled_ = 0;
};

int check_fields() {
  int failed = 0;
  for (const Case& c : kCases) {
    Run run(c);
    run.run();
    const int wrong = run.differing(2 * c.steps);
    const int short_of = run.differing(2 * c.steps - 1);  // the comparison must see a step less
    std::printf("%2d x %2d cells on %d x %d ranks, %s: %d cells differ\n", static_cast<int>(c.global[Y]),
                static_cast<int>(c.global[X]), c.grid[Y], c.grid[X], c.periodic ? "periodic" : "fixed",
                wrong);
    failed += wrong != 0 || short_of == 0 ? 1 : 0;
  }
  return failed;
}

int check_end_of_waiting() {
  Run run(kCases[3]);
  run.cut();
  run.set_timeout(50'000'000);
  run.run();
  std::printf("a packet that never comes: %s\n", run.timed_out() ? "timeout" : "no timeout");
  return run.timed_out() ? 0 : 1;
}

}  // namespace

}  // namespace stencil

int main() { return stencil::check_fields() + stencil::check_end_of_waiting() == 0 ? 0 : 1; }
