#include <algorithm>

#include "panel_cuda.cuh"
#include "panel_cuda.h"

namespace hpl {

namespace {

constexpr int64_t kFewRows = 256;  // of a block: with fewer, more blocks only have more to tell one another
constexpr int64_t kUsualBlocks = 36;  // the rest of the GPU goes on with the update

int64_t most_rows(int64_t leaf) { return kLeafBytes / int64_t(sizeof(double)) / leaf / 32 * 32; }

}  // namespace

CudaPanel::CudaPanel(CublasStream& blas, cudaStream_t stream) : blas_(blas), stream_(stream) {
  int device = 0, units = 0, shared = 0;
  must(cudaGetDevice(&device), "cudaGetDevice");
  must(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  must(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
       "cudaDeviceGetAttribute");
  if (shared >= kLeafBytes + 4096) {
    blocks_ = std::min(units, kLeafMaxBlocks);
    must(cudaFuncSetAttribute(factorize_leaf, cudaFuncAttributeMaxDynamicSharedMemorySize, kLeafBytes),
         "cudaFuncSetAttribute");
  }
  must(cudaMalloc(&mail_, 2 * sizeof(LeafMail)), "cudaMalloc");
  must(cudaMemset(mail_, 0, 2 * sizeof(LeafMail)), "cudaMemset");
}

CudaPanel::~CudaPanel() { cudaFree(mail_); }

bool CudaPanel::run(const Panel& panel) {
  leaf_ = kLeafColumns;
  while (leaf_ > 4 && panel.rows > blocks_ * most_rows(leaf_)) leaf_ /= 2;
  if (panel.rows > blocks_ * most_rows(leaf_)) return false;
  must(cudaMemsetAsync(panel.head(), 0, sizeof(PanelHead), stream_), "cudaMemsetAsync");
  part(panel, 0, panel.width);
  must(cudaMemcpy2DAsync(panel.square(), sizeof(double) * size_t(panel.width), panel.body(),
                         sizeof(double) * size_t(panel.ld), sizeof(double) * size_t(panel.width),
                         size_t(panel.width), cudaMemcpyDeviceToDevice, stream_),
       "cudaMemcpy2DAsync");
  return true;
}

void CudaPanel::part(const Panel& panel, int64_t begin, int64_t end) {
  if (end - begin <= leaf_) return leaf(panel, begin, end);
  const int64_t middle = begin + ((end - begin + 1) / 2 + leaf_ - 1) / leaf_ * leaf_;
  part(panel, begin, middle);
  if (middle >= end) return;
  double* left = panel.body() + begin * panel.ld;
  double* right = panel.body() + middle * panel.ld;
  blas_.solve_lower(middle - begin, end - middle, left + begin, panel.ld, right + begin, panel.ld);
  blas_.gemm(panel.rows - middle, end - middle, middle - begin, left + middle, panel.ld, right + begin,
             panel.ld, right + middle, panel.ld);
  part(panel, middle, end);
}

void CudaPanel::leaf(const Panel& panel, int64_t begin, int64_t end) {
  const int64_t rows = panel.rows - begin;
  const int64_t spread = std::max(kFewRows, (rows + kUsualBlocks - 1) / kUsualBlocks);
  int64_t share = std::min(most_rows(leaf_), (spread + 31) / 32 * 32);
  const auto blocks = static_cast<unsigned>((rows + share - 1) / share);
  Leaf leaf{panel.body(),
            panel.ld,
            panel.rows,
            int(begin),
            int(end - begin),
            int(share),
            reinterpret_cast<long long*>(panel.pivots()),
            panel.first,
            reinterpret_cast<long long*>(&panel.head()->info),
            static_cast<LeafMail*>(mail_),
            number_};
  number_ += static_cast<unsigned long long>(end - begin);
  void* arguments[] = {&leaf};
  // All of the shared memory, for a multiprocessor to itself: beside blocks of the update a leaf takes four
  // times as long.
  must(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(factorize_leaf), dim3(blocks),
                                   dim3(kLeafThreads), arguments, kLeafBytes, stream_),
       "launching the panel");
  if (panel.width == end - begin) return;
  exchange_rows<<<static_cast<unsigned>(std::min<int64_t>(panel.width, 256)), 2 * kLeafColumns, 0, stream_>>>(
      leaf, int(panel.width));
  must(cudaGetLastError(), "launching the row exchange");
}

}  // namespace hpl
