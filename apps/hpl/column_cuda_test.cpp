// Runs on a CPU what a GPU of a process column launches for its panels: column_cuda_test RANKS N NB UNITS
// PANELS. Each rank is a thread, which works like its stream; its GPU has UNITS multiprocessors. The first
// PANELS panels of a matrix of N equations get random values, and their factors are compared with those of a
// plain loop.
#include <cuda_runtime.h>

#include "panel_on_cpu.h"

#define HPL_GPU_BLAS_H  // replaces cuBLAS:
namespace hpl {
static void must(cudaError_t, const char*) {}
class GpuBlasStream {
 public:
  void gemm(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b, int64_t b_ld,
            double* c, int64_t c_ld) const {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t i = 0; i < m; ++i) c[j * c_ld + i] -= a[p * a_ld + i] * b[j * b_ld + p];
  }
  void solve_lower(int64_t m, int64_t n, const double* l, int64_t l_ld, double* b, int64_t b_ld) const {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < m; ++p)
        for (int64_t i = p + 1; i < m; ++i) b[j * b_ld + i] -= l[p * l_ld + i] * b[j * b_ld + p];
  }
};
}  // namespace hpl

#include "panel_cuda.cu"

using namespace on_cpu;

cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** arguments, size_t shared,
                             cudaStream_t) {
  const auto run = reinterpret_cast<void (*)(hpl::Leaf)>(kernel);
  const auto leaf = *static_cast<hpl::Leaf*>(arguments[0]);
  launch(int(blocks.x), threads.x, Index(shared / sizeof(double)), [=] { run(leaf); });
  return cudaSuccess;
}

namespace {

/// A panel at all ranks, and its expected factors.
class Test {
 public:
  Test(const std::vector<hpl::Layout>& layouts, Index number) {
    const hpl::Layout& any = layouts[0];
    const Index first = number * any.nb, width = std::min<Index>(any.nb, any.n - first);
    const Case of{any.grid.rows, any.nb, number, any.n - first, width, 0, 0, ""};
    const Matrix a = of.matrix();
    expected_ = plain(of);
    for (const hpl::Layout& layout : layouts) {
      const hpl::Axis& axis = layout.rows;
      const Index rows = axis.size() - axis.before(first), ld = hpl::Layout::padded(rows);
      auto& memory = memories_.emplace_back(hpl::Panel::room(width, ld) / sizeof(double), NAN);
      panels.push_back({memory.data(), width, rows, ld, axis.owner(first) == axis.mine, first});
      for (Index j = 0; j < width; ++j)
        for (Index i = 0; i < rows; ++i)
          panels.back().body()[j * ld + i] = a[size_t(j * of.rows + row(axis, first, i))];
    }
  }
  /// Returns the largest difference of a rank's factors; infinite if a pivot differs.
  [[nodiscard]] double difference(const hpl::Axis& axis) const {
    const hpl::Panel& panel = panels[size_t(axis.mine)];
    const Index rows = axis.count - panel.first;
    double most = 0;
    const auto compare = [&](double value, Index i, Index j) {
      const double difference = std::abs(value - expected_.a[size_t(j * rows + i)]);
      most = difference <= most ? most : std::isnan(difference) ? INFINITY : difference;
    };
    for (Index j = 0; j < panel.width; ++j) {
      if (panel.pivots()[j] != expected_.pivots[size_t(j)]) return INFINITY;
      for (Index i = 0; i < panel.width; ++i) compare(panel.square()[j * panel.width + i], i, j);
      for (Index i = panel.top ? panel.width : 0; i < panel.rows; ++i)
        compare(panel.body()[j * panel.ld + i], row(axis, panel.first, i), j);
    }
    return panel.head()->info == expected_.info ? most : INFINITY;
  }
  std::vector<hpl::Panel> panels;  // of each rank

 private:
  /// Returns the row of the panel for row i of the body.
  static Index row(const hpl::Axis& axis, Index first, Index i) {
    return axis.global(axis.before(first) + i) - first;
  }
  std::vector<std::vector<double>> memories_;
  Factors expected_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int ranks = std::atoi(argv[1]);
  const Index n = std::atoll(argv[2]), nb = std::atoll(argv[3]);
  fake_multiprocessors = std::atoi(argv[4]);
  std::vector<hpl::Layout> layouts;
  std::vector<std::vector<hpl::FlaggedValue>> rooms;
  for (int rank = 0; rank < ranks; ++rank) {
    layouts.push_back(hpl::Layout::of(hpl::Grid::of(ranks, 1, rank, true), n, nb));
    rooms.emplace_back(hpl::CudaPanel::room(nb) / sizeof(hpl::FlaggedValue));
  }
  std::vector<Test> tests;
  for (Index panel = 0; panel < std::min<Index>(layouts[0].blocks(), std::atoll(argv[5])); ++panel)
    tests.emplace_back(layouts, panel);
  std::vector<char> refused(size_t(ranks), 0);
  std::vector<std::thread> streams;
  for (int rank = 0; rank < ranks; ++rank)
    streams.emplace_back([&, rank] {
      hpl::GpuBlasStream blas;
      hpl::CudaPanel gpu(blas, nullptr);
      hpl::PanelColumn column{layouts[size_t(rank)].rows, gpu.blocks(), {}};
      for (auto& room : rooms) column.rooms.push_back(reinterpret_cast<char*>(room.data()));
      gpu.join(column);
      for (Test& test : tests)
        if (!gpu.run(test.panels[size_t(rank)])) ++refused[size_t(rank)];
    });
  for (std::thread& stream : streams) stream.join();
  if (std::count(refused.begin(), refused.end(), refused[0]) != ranks) return 3;
  double difference = 0;
  for (size_t i = size_t(refused[0]); i < tests.size(); ++i)  // the first panels have the most rows
    for (const hpl::Layout& layout : layouts)
      difference = std::max(difference, tests[i].difference(layout.rows));
  std::printf("%zu panels, %d refused, largest difference %.1e\n", tests.size(), refused[0], difference);
  return difference < 1e-11 ? 0 : 1;
}
