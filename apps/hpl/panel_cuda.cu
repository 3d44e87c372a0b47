#include <algorithm>

#include "panel_cuda.cuh"
#include "panel_cuda.h"

namespace hpl {

namespace {

constexpr int64_t kFewRows = 256;     // per block; with fewer rows, more blocks only have to exchange more
constexpr int64_t kUsualBlocks = 36;  // the rest of the GPU continues the update
constexpr int64_t kExchangeBlocks = 64;

int64_t rows_of_block(int64_t leaf) { return kLeafBytes / int64_t(sizeof(double)) / leaf / 32 * 32; }

}  // namespace

const int64_t CudaPanel::kMostRanks = kLeafMaxRanks;

CudaPanel::CudaPanel(GpuBlasStream& blas, cudaStream_t stream) : blas_(blas), stream_(stream) {
  int device = 0, units = 0, shared = 0;
  must(cudaGetDevice(&device), "cudaGetDevice");
  must(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  must(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
       "cudaDeviceGetAttribute");
  if (shared < kLeafBytes + 4096) return;
  blocks_ = units;
  must(cudaFuncSetAttribute(factorize_leaf, cudaFuncAttributeMaxDynamicSharedMemorySize, kLeafBytes),
       "cudaFuncSetAttribute");
}

size_t CudaPanel::room(int64_t nb) { return sizeof(LeafRoom) + size_t(nb) * kMovedBytes; }

void CudaPanel::join(const PanelColumn& column) {
  column_ = column;
  most_blocks_ = std::min(column.blocks, kLeafMaxBlocks / int64_t(column.rooms.size()));
  number_ = 1;
}

int64_t CudaPanel::most_rows(const Panel& panel, int64_t column) const {
  int64_t most = 0;
  for (int rank = 0; rank < column_.rows.ranks; ++rank)
    most = std::max(most, column_.rows.before(column_.rows.count, rank) -
                              column_.rows.before(panel.first + column, rank));
  return most;
}

bool CudaPanel::run(const Panel& panel) {
  // The most rows of any rank, not those of this rank, so that all ranks of the column decide alike.
  const int64_t rows = most_rows(panel, 0);
  leaf_ = kLeafColumns;
  while (leaf_ > 4 && rows > most_blocks_ * rows_of_block(leaf_)) leaf_ /= 2;
  if (rows > most_blocks_ * rows_of_block(leaf_)) return false;
  must(cudaMemsetAsync(panel.head(), 0, sizeof(PanelHead), stream_), "cudaMemsetAsync");
  part(panel, 0, panel.width);
  return true;
}

// Like PanelFactorization::part(): every rank of the column has the square, and solves it itself.
void CudaPanel::part(const Panel& panel, int64_t begin, int64_t end) {
  if (end - begin <= leaf_) return leaf(panel, begin, end);
  const int64_t middle = begin + ((end - begin + 1) / 2 + leaf_ - 1) / leaf_ * leaf_;
  part(panel, begin, middle);
  if (middle >= end) return;
  const double* triangle = panel.square() + begin * panel.width + begin;
  double* right = panel.square() + middle * panel.width + begin;
  const int64_t from = panel.top ? middle : 0;
  blas_.solve_lower(middle - begin, end - middle, triangle, panel.width, right, panel.width);
  blas_.gemm(panel.rows - from, end - middle, middle - begin, panel.body() + begin * panel.ld + from,
             panel.ld, right, panel.width, panel.body() + middle * panel.ld + from, panel.ld);
  part(panel, middle, end);
}

void CudaPanel::leaf(const Panel& panel, int64_t begin, int64_t end) {
  const Axis& axis = column_.rows;
  const int64_t rows = most_rows(panel, begin), usual = std::min(kUsualBlocks, most_blocks_);
  const int64_t spread = std::max(kFewRows, (rows + usual - 1) / usual);
  const int64_t share = std::min(rows_of_block(leaf_), (spread + 31) / 32 * 32);
  const auto blocks = static_cast<unsigned>((rows + share - 1) / share);
  Leaf leaf{};
  std::transform(column_.rooms.begin(), column_.rooms.end(), leaf.room,
                 [](char* room) { return reinterpret_cast<LeafRoom*>(room); });
  leaf.rows = {axis.block, axis.ranks, axis.mine};
  leaf.square = panel.square(), leaf.body = panel.body();
  leaf.ld = panel.ld, leaf.count = panel.rows;
  leaf.before = axis.before(panel.first), leaf.first = panel.first;
  leaf.pivots = reinterpret_cast<long long*>(panel.pivots());
  leaf.info = reinterpret_cast<long long*>(&panel.head()->info);
  leaf.panel_width = int(panel.width), leaf.top = axis.owner(panel.first);
  leaf.column = int(begin), leaf.width = int(end - begin);
  leaf.share = int(share);
  leaf.number = number_;
  number_ += static_cast<unsigned long long>(end - begin);
  void* arguments[] = {&leaf};
  // Uses all shared memory, to have a multiprocessor to itself: beside blocks of the update a leaf takes four
  // times as long. The launch is cooperative, because the blocks wait for each other.
  must(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(factorize_leaf), dim3(blocks),
                                   dim3(kLeafThreads), arguments, kLeafBytes, stream_),
       "launching the panel");
  if (panel.width == end - begin) return;
  // Few enough to run at once, too, because they wait for those of other GPUs.
  const dim3 each(static_cast<unsigned>(std::min(panel.width, kExchangeBlocks)));
  must(cudaLaunchKernel(reinterpret_cast<const void*>(exchange_rows), each, dim3(2 * kLeafColumns), arguments,
                        0, stream_),
       "launching the row exchange");
}

}  // namespace hpl
