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

struct Driver {
#define PW_CUDA_MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
  PW_CUDA_FUNCTIONS(PW_CUDA_MEMBER)
  PW_CUDA_NEWER_FUNCTIONS(PW_CUDA_MEMBER)
#undef PW_CUDA_MEMBER

  std::string library;  ///< the name under which it was loaded
  int version = 0;      ///< version of the interface: 1000 * major + 10 * minor

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
