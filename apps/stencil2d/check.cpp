// Against the eigenmodes for every size; bit by bit against a serial run where rank 0 can do that in a second
// or two.
#include "check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace stencil {

namespace {

constexpr uint64_t kSerialCells = uint64_t{1} << 20;      // gathered on rank 0
constexpr uint64_t kSerialSteps = uint64_t{100'000'000};  // cells times steps

double farthest(const Lattice& lattice, const std::vector<double>& field,
                const std::vector<double>& expected) {
  double error = 0;
  for (uint64_t y = 1; y <= lattice.count[Y]; ++y) {
    for (uint64_t x = 1; x <= lattice.count[X]; ++x) {
      const size_t i = y * lattice.pitch() + x;
      const double off = std::abs(field[i] - expected[i]);
      if (!(off <= error)) error = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
    }
  }
  return error;
}

/// Puts the own cells of `part` into their places in the global lattice.
void put_into(std::vector<double>& whole, const Lattice& part, const double* cells) {
  for (uint64_t y = 0; y < part.count[Y]; ++y) {
    const double* row = cells + (y + 1) * part.pitch() + 1;
    std::copy_n(row, part.count[X], &whole[(part.first[Y] + y) * part.global[X] + part.first[X]]);
  }
}

uint64_t count_differing(const std::vector<double>& a, const std::vector<double>& b) {
  uint64_t differing = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differing += std::bit_cast<uint64_t>(a[i]) != std::bit_cast<uint64_t>(b[i]) ? 1 : 0;
  return differing;
}

/// What all ranks' arrays make together.
std::vector<double> assemble(const Lattice& lattice, const std::vector<double>& mine, Group& group) {
  const Lattice largest = make_lattice(lattice.global, lattice.grid, lattice.periodic, 0);
  const size_t room = largest.cells();
  std::vector<double> padded(room), all(room * static_cast<size_t>(group.size()));
  std::copy(mine.begin(), mine.end(), padded.begin());
  group.all_gather(padded.data(), room * sizeof(double), all.data());
  std::vector<double> whole(lattice.global[Y] * lattice.global[X]);
  for (int rank = 0; rank < group.size(); ++rank)
    put_into(whole, make_lattice(lattice.global, lattice.grid, lattice.periodic, rank),
             all.data() + static_cast<size_t>(rank) * room);
  return whole;
}

/// The global lattice after a serial run.
std::vector<double> serial(const Lattice& lattice, uint64_t steps) {
  const Lattice alone = make_lattice(lattice.global, {1, 1}, lattice.periodic, 0);
  std::vector<double> field(lattice.global[Y] * lattice.global[X]);
  put_into(field, alone, Modes(alone).after(0).data());
  run_serially(field, lattice.global, lattice.periodic, steps);
  return field;
}

}  // namespace

Verdict check(const Lattice& lattice, const std::vector<double>& field, uint64_t steps, Group& group) {
  const uint64_t cells = lattice.global[Y] * lattice.global[X];
  Verdict mine;
  mine.error = farthest(lattice, field, Modes(lattice).after(steps));
  mine.tolerance = 4 * std::numeric_limits<double>::epsilon() * (static_cast<double>(steps) + 8);
  mine.serial = cells <= kSerialCells && cells * steps <= kSerialSteps;
  if (mine.serial) {
    const std::vector<double> whole = assemble(lattice, field, group);
    if (group.rank() == 0) mine.differing = count_differing(whole, serial(lattice, steps));
  }
  std::vector<Verdict> all(static_cast<size_t>(group.size()));
  group.all_gather(&mine, sizeof mine, all.data());
  for (const Verdict& theirs : all) {
    mine.error = std::max(mine.error, theirs.error);
    mine.differing = std::max(mine.differing, theirs.differing);
  }
  return mine;
}

}  // namespace stencil
