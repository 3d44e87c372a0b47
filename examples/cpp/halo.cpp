// Heat spreads over a ring of 16 x 16 cells, whose rows are distributed over all ranks: each step refreshes
// the halo, and meanwhile computes the cells that do not need it.
//
//   c++ -std=c++20 halo.cpp $(pkg-config --cflags --libs peerway) -o halo && peerway run -n 2 -- ./halo
#include <chrono>
#include <cstdio>
#include <peerway/peerway.hpp>
#include <vector>

using namespace std::chrono_literals;
using peerway::check;

namespace {
constexpr uint64_t kCells = 16, kPitch = kCells + 2;
constexpr int kSteps = 50;

// Row `row` one step later.
void spread(const double* u, double* next, uint64_t row) {
  for (uint64_t i = row * kPitch + 1; i <= row * kPitch + kCells; ++i)
    next[i] = u[i] + 0.1 * (u[i - kPitch] + u[i + kPitch] + u[i - 1] + u[i + 1] - 4 * u[i]);
}

int simulate() {
  auto team = peerway::Team::from_launcher();
  auto context = peerway::Context(team);
  const auto mine = peerway::block_of(kCells, team.size(), team.rank());  // the last may have no row

  // One layer of shadow on all sides. Peers reach memory from the context the fastest.
  auto region = context.allocate(peerway::host, (mine.count + 2) * kPitch * sizeof(double));
  auto* u = static_cast<double*>(region.address());
  std::vector<double> next((mine.count + 2) * kPitch);
  if (mine.first <= kCells / 2 && kCells / 2 < mine.first + mine.count)
    u[(kCells / 2 - mine.first + 1) * kPitch + kCells / 2 + 1] = 100;

  const peerway::ArrayDim rows{.extent = kCells, .grid_dim = 0, .periodic = true, .shadow = {1, 1}};
  const peerway::ArrayDim columns{.extent = kCells, .periodic = true, .shadow = {1, 1}};
  auto halo = context.halo({peerway::Array(region, sizeof(double), {rows, columns})},
                           peerway::Grid{static_cast<uint32_t>(team.size())});
  for (int step = 0; step < kSteps; ++step) {
    check(halo.start());
    for (uint64_t row = 2; row < mine.count; ++row) spread(u, next.data(), row);  // needs no halo
    check(halo.finish(10s));
    if (mine.count == 0) continue;
    spread(u, next.data(), 1);
    spread(u, next.data(), mine.count);
    for (uint64_t i = kPitch; i < (mine.count + 1) * kPitch; ++i) u[i] = next[i];
  }

  double heat = 0;
  for (uint64_t row = 1; row <= mine.count; ++row)
    for (uint64_t i = 1; i <= kCells; ++i) heat += u[row * kPitch + i];
  std::printf("rank %d has %.6f of the heat\n", team.rank(), heat);
  team.barrier(10s);  // nobody closes what a neighbour still uses
  return 0;
}
}  // namespace

int main() try { return simulate(); } catch (const peerway::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
