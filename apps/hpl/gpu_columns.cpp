#include "gpu_columns.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hpl {

namespace {

/// The message of a rank to all others.
struct Joining {
  PanelUnit unit;
  char why_not[400];  // "": it can reach all ranks of its column
};

/// Returns why the devices cannot be joined.
std::string hindrance(const Grid& grid, const std::vector<Joining>& all) {
  if (grid.rows > all[0].unit.ranks)
    return "a process column has " + std::to_string(grid.rows) +
           " ranks, and kernels factorize panels of at most " + std::to_string(all[0].unit.ranks);
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].why_not[0] != '\0') return "rank " + std::to_string(rank) + ": " + all[rank].why_not;
  if (grid.rows == 1) return "";
  // Kernels of two processes on one GPU take turns of milliseconds, and these kernels would wait in them for
  // one another.
  for (size_t rank = 0; rank < all.size(); ++rank)
    for (size_t other = 0; other < rank; ++other)
      if (std::memcmp(all[rank].unit.gpu, all[other].unit.gpu, sizeof(PanelUnit::gpu)) == 0)
        return "ranks " + std::to_string(other) + " and " + std::to_string(rank) + " share a GPU";
  return "";
}

}  // namespace

std::string join_column(Comm& comm, Device& device, const Layout& layout, Pool pool, size_t offset) {
  const Grid& grid = layout.grid;
  PanelColumn column{layout.rows, 0, {}};
  Joining mine{device.panel_unit(), ""};
  std::string why_not;
  if (mine.unit.blocks == 0) why_not = device.name() + " has too little shared memory for a leaf of a panel";
  for (int p = 0; p < grid.rows && why_not.empty(); ++p) {
    const int rank = grid.rank(p, grid.column);
    column.rooms.push_back(p == grid.row ? pool.memory + offset : comm.reach(rank, offset, why_not));
  }
  why_not.copy(mine.why_not, sizeof mine.why_not - 1);
  std::vector<Joining> all(static_cast<size_t>(comm.size()));
  comm.all_gather(&mine, sizeof mine, all.data());
  why_not = hindrance(grid, all);
  if (!why_not.empty()) return why_not;
  column.blocks = std::min_element(all.begin(), all.end(), [](const Joining& a, const Joining& b) {
                    return a.unit.blocks < b.unit.blocks;
                  })->unit.blocks;
  device.join(column);
  return "";
}

}  // namespace hpl
