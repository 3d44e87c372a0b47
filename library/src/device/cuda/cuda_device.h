// A CUDA device: one GPU through its primary context, which the CUDA runtime, PyTorch and CuPy also use. The
// context is opened at first use, because each one costs memory on the GPU and in the host. A HIP device is
// one whose driver calls HIP (../hip).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "device/cuda/kernels.h"
#include "device/cuda/mapper.h"
#include "device/cuda/peer_access.h"
#include "device/cuda/pins.h"
#include "device/cuda/queue.h"
#include "device/cuda/vmm.h"
#include "device/device.h"

namespace pw::cuda {

class CudaDevice : public Device {
 public:
  /// `driver` and `pins` must outlive the device; all devices of a process share them.
  CudaDevice(const Driver& driver, int ordinal, Pins& pins, MakeImage make_image);
  ~CudaDevice() override;

  [[nodiscard]] DeviceId id() const override { return {driver_.vendor.kind, gpu_.ordinal}; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::array<std::byte, 16> uuid() const override { return peers_.own(); }
  [[nodiscard]] double memory_bytes_per_us() const override;

  std::optional<Allocation> find(const void* address, uint64_t bytes) override;
  uint64_t allocation_id(const void* address) override;
  Allocation allocate(uint64_t bytes) override;
  void release(const Allocation& allocation) noexcept override;
  Export export_allocation(const Allocation& allocation, const void* address) override;
  void forget(const Export& exported) noexcept override;
  std::shared_ptr<Mapping> import(const Export& exported) override;
  std::unique_ptr<Queue> make_queue() override;
  bool has_kernels(std::string& why_not) override;
  int dma_buf(const Allocation& allocation) override;
  std::unique_ptr<CpuMapping> map_for_cpu(const Allocation& allocation) override;
  void enter() override;
  void pin(void* address, uint64_t bytes) override;
  void unpin(void* address) noexcept override;
  [[nodiscard]] void* as_seen(void* address) override;
  void* make_stream() override;
  void free_stream(void* stream) noexcept override;
  bool owns_stream(void* stream, std::string& why_not) override;
  pw_status call(void* stream, void (*call)(void*), void* user) override;
  pw_status copy_on(void* stream, const FlatCopy& copy) override;
  bool stream_idle(void* stream, pw_status& status) override;
  void load_reduction(peerway::device::Element element, peerway::device::Combine combine) override;
  std::unique_ptr<Runner> make_runner(const Program& program) override;
  void clear(void* address, uint64_t bytes) override;
  [[nodiscard]] bool reaches(const Export& exported, std::string& why_not) const override;
  [[nodiscard]] std::string link(const Export& exported) const override;
  [[nodiscard]] bool carries_lines(const Export& exported) const override;

 private:
  /// Returns the primary context; it is opened once and kept to the end of the process. Throws Error.
  CUcontext context();
  Allocation allocate_by_vmm(uint64_t bytes);
  /// Returns what find() returns for memory that the driver has just allocated. Throws Error.
  Allocation recognised(CUdeviceptr address, uint64_t bytes);
  const Kernels* kernels(std::string& why_not);
  const Kernels& kernels_of_plans();  ///< throws Error if there are none
  [[nodiscard]] int attribute(int which) const;
  /// Returns an empty text if CUDA IPC works here, else why it does not. Tested with the first allocation
  /// that would need it.
  const std::string& why_no_ipc(const Allocation& allocation);

  const Driver& driver_;
  Gpu gpu_;
  Pins& pins_;
  MakeImage make_image_;
  std::string name_;
  PeerAccesses peers_;
  std::mutex mutex_;  ///< protects the members below
  VmmKind vmm_;
  std::atomic<CUcontext> context_ = nullptr;
  std::atomic<const Kernels*> kernels_ = nullptr;
  std::unique_ptr<const Kernels> own_kernels_;
  std::string why_no_kernels_;
  std::vector<std::unique_ptr<CpuMapper>> mappers_;  ///< found when the first mapping is requested
  std::string why_no_gdrcopy_;
  bool asked_ipc_ = false;
  std::string why_no_ipc_;
  using MappingKey = std::tuple<int32_t, uint64_t, uint64_t, std::array<std::byte, 64>>;
  std::map<MappingKey, std::weak_ptr<Mapping>> mappings_;  ///< by process, allocation, bytes, IPC handle
};

}  // namespace pw::cuda
