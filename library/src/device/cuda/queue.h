// A queue of copies on one GPU: a CUDA stream of its own, non-blocking and of the highest priority.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "device/cuda/driver.h"
#include "device/cuda/kernels.h"
#include "device/cuda/pins.h"
#include "device/device.h"

namespace pw::cuda {

/// The properties of a GPU that a queue needs.
struct Gpu {
  const Driver& driver;
  int ordinal = 0;
  unsigned sms = 1;
  uint64_t max_pitch = 0;
  bool writes_words = true;       ///< the stream itself can store 64-bit words
  bool same_host_address = true;  ///< pinned host memory has the same address on CPU and GPU

  [[nodiscard]] std::string name() const { return driver.device_name(ordinal); }  ///< "cuda:1"
};

/// Returns the GPU's address for an address of the process; they may differ for pinned host memory.
inline uint64_t address_on(const Gpu& gpu, Pins& pins, const void* address) {
  const auto number = reinterpret_cast<uint64_t>(address);
  return gpu.same_host_address ? number : pins.device_address(number);
}

class CudaQueue final : public Queue {
 public:
  /// Returns the kernels for CopyBy::kernel, or null with the reason. Called at each use, so that making a
  /// queue compiles nothing.
  using FindKernels = std::function<const Kernels*(std::string& why_not)>;

  /// Throws Error.
  CudaQueue(const Gpu& gpu, CUcontext context, Pins& pins, FindKernels kernels);
  ~CudaQueue() override;

  pw_status copy(const Copy& copy, CopyBy by) override;
  pw_status write(uint64_t* word, uint64_t value) override;
  pw_status write_aside(uint64_t* word, uint64_t value) override;
  pw_status copy_and_write(const Copy& copy, CopyBy by, uint64_t* word, uint64_t value) override;
  bool idle(pw_status& status) override;

 private:
  pw_status by_engine(const Copy& copy);
  pw_status by_kernel(const Copy& copy, uint64_t* word, uint64_t value);
  pw_status store(uint64_t* word, uint64_t value) { return store(stream_, word, value); }
  pw_status store(CUstream stream, uint64_t* word, uint64_t value);
  CUresult open_aside();
  [[nodiscard]] CUresult enqueue(const struct EnginePiece& piece) const;
  [[nodiscard]] Copy as_seen(const Copy& copy) const;
  [[nodiscard]] uint64_t as_seen(const void* address) const;
  [[nodiscard]] pw_status failed(CUresult result, const std::string& action) const;

  const Gpu gpu_;
  CUcontext context_;
  Pins& pins_;
  FindKernels find_kernels_;
  std::mutex mutex_;  ///< held during a copy, which may need several driver calls in a row
  CUstream stream_ = nullptr;
  CUstream aside_ = nullptr;   ///< the stream of write_aside(); made at its first call
  CUevent reached_ = nullptr;  ///< marks the position of stream_ when write_aside() was called
  CUdeviceptr finished_ = 0;   ///< CopyArguments::finished for all launches in this stream
};

}  // namespace pw::cuda
