// Programs run by a GPU: the table of steps and the epochs in its memory, one kernel for a start, a finish,
// or both.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/cuda/kernels.h"
#include "device/cuda/pins.h"
#include "device/cuda/queue.h"
#include "device/program.h"

namespace pw::cuda {

/// The steps as the kernels want them, of the start and then of the finish; `seen` gives the address at which
/// the GPU finds one of the process. Pure but for it.
std::vector<peerway::device::Step> make_steps(const Program& program,
                                              const std::function<uint64_t(const void*)>& seen);

/// The same as pieces, where all steps are packets of words of 8 bytes at one stride that nothing gates; else
/// nothing.
std::vector<PacketPiece> make_packet_pieces(std::span<const peerway::device::Step> steps);

class CudaRunner final : public Runner {
 public:
  /// Throws Error.
  CudaRunner(const Gpu& gpu, CUcontext context, Pins& pins, const Kernels& kernels, const Program& program);
  ~CudaRunner() override;

  pw_status enqueue(void* stream, Part part) override;
  pw_status begin(Part part, const std::optional<void*>& after) override;
  bool done(pw_status& status) override;
  bool notify(void (*call)(void*), void* user) override;
  uint64_t epochs(Part part) override;
  pw_status handle(pw_plan_handle& handle) override;

 private:
  [[nodiscard]] pw_guard guard() const;
  void upload();
  void prepare(Part part);
  void release() noexcept;

  const Gpu gpu_;
  CUcontext context_;
  Pins& pins_;
  const Kernels& kernels_;
  std::shared_ptr<Guard> guard_;
  std::vector<peerway::device::Step> steps_;
  size_t start_steps_;
  unsigned start_pieces_ = 0, finish_pieces_ = 0;
  std::vector<PacketPiece> pieces_;
  CUdeviceptr memory_ = 0;  ///< the steps, the counters of those that are done, the epochs, the pieces
  CUdeviceptr epochs_ = 0;
  CUdeviceptr pieces_in_memory_ = 0;
  PlanLaunch launch_[3] = {};    ///< by Part
  CUstream own_ = nullptr;       ///< of starts from the host
  CUstream begun_on_ = nullptr;  ///< where begin() was last
};

}  // namespace pw::cuda
