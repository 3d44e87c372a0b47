// Prints what gpu_columns.cpp decides for the grids in the arguments, PxQ GPUS REACH each: ranks share GPUs
// in turn, and rank REACH cannot reach its column (-1: all can).
#include "gpu_columns.cpp"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  for (int i = 1; i + 2 < argc; i += 3) {
    char* rest = nullptr;
    const int rows = static_cast<int>(std::strtol(argv[i], &rest, 10)), columns = std::atoi(rest + 1);
    std::vector<hpl::Joining> all(static_cast<size_t>(rows * columns));
    for (size_t rank = 0; rank < all.size(); ++rank) {
      all[rank] = {{{}, 132, 16}, ""};
      all[rank].unit.gpu[15] = static_cast<char>(rank % static_cast<size_t>(std::atoi(argv[i + 1])));
      if (std::atoi(argv[i + 2]) == static_cast<int>(rank)) std::strcpy(all[rank].why_not, "no NVLink");
    }
    std::printf("%s\n", hpl::hindrance(hpl::Grid::of(rows, columns, 0, true), all).c_str());
  }
}
