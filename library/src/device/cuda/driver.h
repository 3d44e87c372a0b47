// The CUDA driver, loaded at run time: one function pointer for each entry of driver_abi.h, and texts for its
// errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/setting.h"
#include "device/cuda/driver_abi.h"
#include "peerway/peerway.h"

namespace pw::settings {

extern const PathSetting cuda_library;

}  // namespace pw::settings

namespace pw::cuda {

/// The oldest driver interface that is supported: CUDA 12.0.
inline constexpr int kOldestDriver = 12000;

/// How the drivers with this interface differ for people: CUDA's own, and the one that calls HIP (../hip).
struct Vendor {
  pw_device_kind kind = PW_CUDA;
  std::string_view device = "cuda";           ///< name of its devices: "cuda:0"
  std::string_view api = "CUDA";              ///< name of its interface
  std::string_view allocates = "cudaMalloc";  ///< the function with which programs usually allocate
  std::string_view fast_link = "nvlink";      ///< name of a link between GPUs with atomic operations
  std::string_view why_no_gpu = "check CUDA_VISIBLE_DEVICES and nvidia-smi";
  std::string_view why_no_access =
      "no NVLink joins them and PCIe peer-to-peer is off (nvidia-smi topo -p2p r; IOMMU and ACS settings)";
  std::string_view why_no_dma_buf =
      "the driver has no dma-buf for GPU memory; install the open GPU kernel modules (driver 515 or newer, "
      "kernel 5.12 or newer)";
  std::string_view why_no_hidden;  ///< why GPUs that this process does not see are not reached; empty: they
                                   ///< are
};

struct Driver {
#define PW_CUDA_MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
  PW_CUDA_FUNCTIONS(PW_CUDA_MEMBER)
  PW_CUDA_NEWER_FUNCTIONS(PW_CUDA_MEMBER)
#undef PW_CUDA_MEMBER

  std::string library;  ///< the name under which it was loaded
  int version = 0;      ///< version of the interface: 1000 * major + 10 * minor
  Vendor vendor;

  /// "cuda:1"
  [[nodiscard]] std::string device_name(int ordinal) const;

  /// Loads `library` (empty: libcuda.so.1) and initializes it. Returns null if it cannot be used, with the
  /// reason and the remedy in `why`. It is never unloaded, because the driver has threads of its own.
  static std::unique_ptr<const Driver> load(const std::string& library, std::string& why);

  /// Whether it has graphs with conditional nodes.
  [[nodiscard]] bool has_conditional_nodes() const;

  /// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  [[nodiscard]] std::string text(CUresult result) const;

  /// Returns the status for `result`: PW_NO_MEMORY or PW_DEVICE.
  [[nodiscard]] static pw_status status(CUresult result);

  /// Throws Error "CALL: CUDA_ERROR_..." unless `result` is success.
  void check(CUresult result, std::string_view call) const;
};

/// Makes a context current for a scope, in any thread, and then restores the previous one.
class Current {
 public:
  Current(const Driver& driver, CUcontext context);
  ~Current();
  Current(const Current&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

/// "13.0"
std::string version_text(int version);

}  // namespace pw::cuda
