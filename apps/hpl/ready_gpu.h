// The data that a GPU needs before the updates with a panel: the inverse of the panel's triangle, the rows
// that move, and memory for the rows of U.
#ifndef HPL_READY_GPU_H
#define HPL_READY_GPU_H

#include <algorithm>

#include "device.h"
#include "gpu_runtime.h"

namespace hpl {

/// It also keeps those of the previous panel, for updates that are still running.
class Ready {
 public:
  static constexpr int64_t kWidest = 8192;  // columns of an update

  explicit Ready(int64_t nb) : nb_(nb) {
    must(cudaMalloc(&device_, bytes(nb)), "cudaMalloc");
    must(cudaMallocHost(&rows_host_, 2 * rows_bytes(nb)), "cudaMallocHost");
  }
  ~Ready() {
    cudaFree(device_);
    cudaFreeHost(rows_host_);
  }
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;

  static uint64_t bytes(int64_t nb) {
    return sizeof(double) * static_cast<uint64_t>(nb * (2 * kWidest + 3 * nb)) + 2 * rows_bytes(nb);
  }

  /// Returns memory for the inverse of the panel's triangle, m x m.
  double* next_inverse(int64_t m) {
    m_ = m;
    which_inverse_ = 1 - which_inverse_;
    return inverse();
  }
  [[nodiscard]] double* inverse() const { return device_ + which_inverse_ * nb_ * nb_; }
  [[nodiscard]] int64_t m() const { return m_; }

  /// Memory for the rows that are multiplied with the inverse, NB x kWidest; for the queue `ahead`, NB x NB.
  [[nodiscard]] double* top(int place) const { return device_ + nb_ * (3 * nb_ + place * kWidest); }
  [[nodiscard]] double* top_ahead() const { return device_ + 2 * nb_ * nb_; }

  /// Sets the rows that the panel moves; the stream copies them.
  void next_moves(const Moves& moves, cudaStream_t stream) {
    width_ = moves.top.size();
    displaced_ = moves.to.size();
    which_moves_ = 1 - which_moves_;
    int64_t* host = rows_host_ + which_moves_ * 3 * nb_;
    for (const auto* list : {&moves.top, &moves.from, &moves.to})
      host = std::copy(list->begin(), list->end(), host);
    must(cudaMemcpyAsync(rows(), rows_host_ + which_moves_ * 3 * nb_,
                         (width_ + 2 * displaced_) * sizeof(int64_t), cudaMemcpyHostToDevice, stream),
         "cudaMemcpyAsync");
  }
  [[nodiscard]] int width() const { return static_cast<int>(width_); }
  [[nodiscard]] int moved() const { return static_cast<int>(width_ + displaced_); }
  [[nodiscard]] const long long* from() const { return rows(); }
  [[nodiscard]] const long long* to() const { return rows() + width_ + displaced_; }

 private:
  static size_t rows_bytes(int64_t nb) { return sizeof(int64_t) * static_cast<size_t>(3 * nb); }
  [[nodiscard]] long long* rows() const {
    return reinterpret_cast<long long*>(top(2)) + which_moves_ * 3 * nb_;
  }

  int64_t nb_, m_ = 0;
  double* device_ = nullptr;
  int64_t* rows_host_ = nullptr;
  int which_inverse_ = 0, which_moves_ = 0;
  size_t width_ = 0, displaced_ = 0;
};

}  // namespace hpl

#endif
