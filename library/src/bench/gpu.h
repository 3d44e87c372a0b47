// GPU functions of the timed loops, apart from the library: they capture streams into graphs, and launch
// kernels of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "device/cuda/driver.h"
#include "peerway/peerway.h"

namespace pw::bench {

class Gpu {
 public:
  /// A GPU of any kind. Throws Error if there is no driver or no such GPU.
  explicit Gpu(pw_device device);

  /// Makes it the current GPU of the calling thread.
  void enter() const;

  /// The work that `body` gives to the stream, captured for replay.
  class Graph {
   public:
    Graph() = default;
    Graph(const Gpu& gpu, pw_stream stream, const std::function<void()>& body);
    void launch(pw_stream stream) const;

   private:
    const Gpu* gpu_ = nullptr;
    std::shared_ptr<cuda::CUgraphExec_st> exec_;
  };

  /// Returns a kernel of library/src/bench/kernels.cu, compiled for this GPU when it is first requested.
  [[nodiscard]] cuda::CUfunction kernel(const char* name) const;

  /// Enqueues the kernel; `arguments` has the form for cuLaunchKernel.
  void launch(cuda::CUfunction kernel, unsigned blocks, unsigned threads, pw_stream stream,
              void** arguments) const;

  /// Allocates memory on the GPU.
  [[nodiscard]] std::shared_ptr<void> allocate(uint64_t bytes) const;

  /// Copies between host and device; complete when it returns.
  void copy(void* to, const void* from, uint64_t bytes) const;

 private:
  void check(int result, const char* call) const;

  std::shared_ptr<const cuda::Driver> driver_;
  cuda::CUcontext context_ = nullptr;
  int ordinal_ = 0;
  mutable cuda::CUmodule module_ = nullptr;  ///< lives as long as the context
};

}  // namespace pw::bench
