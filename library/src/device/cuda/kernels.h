// The kernels of the folder kernels/, loaded into one GPU's context.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/driver.h"
#include "device/cuda/kernels/plan_arguments.h"
#include "device/cuda/kernels/reduce_arguments.h"
#include "device/cuda/launch.h"

namespace pw::cuda {

/// The plan kernels, in the order of their names in kernels.cpp.
enum class PlanKernel : uint8_t {
  few_steps,
  some_steps,
  many_steps,
  few_packets,
  some_packets,
  few_lines,
  some_lines
};

/// A launch of one part of a plan. All kernels find the head at the same place.
struct PlanLaunch {
  union {
    PlanHead head;
    SomeSteps steps;
    FewMessages few;
    SomeMessages messages;
  };
  PlanKernel kernel;
  unsigned blocks;
  unsigned threads;
};

/// A kernel that combines the operands of several ranks; each is a module of its own.
struct ReduceKernel {
  peerway::device::Element element;
  peerway::device::Combine combine;
  auto operator<=>(const ReduceKernel&) const = default;
};

struct ReduceLaunch {
  ReduceArguments arguments;
  CUfunction function;
  unsigned blocks;
  /// Whether its blocks may be resident while the work before it runs. That work waits for other ranks, and
  /// one of them may need this GPU to send: blocks that fill the GPU would keep it from running.
  bool early;
};

/// Makes device code for a GPU of that compute capability (90 for 9.0): of the kernel, or of all others.
/// Throws Error.
using MakeImage = std::function<std::string(int capability, const std::optional<ReduceKernel>& reduction)>;

class Kernels {
 public:
  /// The context must be current, here and in reduction(). Both throw Error.
  Kernels(const Driver& driver, int capability, MakeImage make_image);
  /// Returns the kernel, which is compiled and loaded at the first call.
  [[nodiscard]] CUfunction reduction(ReduceKernel which) const;

  [[nodiscard]] CUresult launch(const CopyLaunch& launch, CUstream stream) const;
  [[nodiscard]] CUresult launch(const PlanLaunch& plan, CUstream stream) const;
  [[nodiscard]] CUresult launch(const ReduceLaunch& launch, CUstream stream) const;
  /// `words` lie in pinned host memory; answer_clock() defines their use.
  [[nodiscard]] CUresult launch_clock(CUdeviceptr words, unsigned rounds, CUstream stream) const;

 private:
  /// Launches a kernel of plans; `early`: it may begin while the work before it ends (begin.h).
  [[nodiscard]] CUresult launch(CUfunction function, unsigned blocks, unsigned threads, void* arguments,
                                bool early, CUstream stream) const;

  /// Loads machine code or PTX, for as long as the context lives.
  [[nodiscard]] CUmodule load(const std::string& image) const;
  [[nodiscard]] CUfunction find(CUmodule module, const std::string& name) const;

  const Driver& driver_;
  const int capability_;
  const MakeImage make_image_;
  std::array<CUfunction, 5> function_{};  ///< by the logarithm of the word size in bytes
  std::array<CUfunction, 7> plan_{};      ///< by PlanKernel
  CUfunction clock_ = nullptr;
  mutable std::mutex mutex_;  ///< protects reductions_
  mutable std::map<ReduceKernel, CUfunction> reductions_;
};

/// Returns machine code for a GPU of that capability, from the cache in `folder` or compiled by NVRTC. Throws
/// Error.
std::string kernel_image(int capability, const std::optional<ReduceKernel>& reduction,
                         const std::string& nvrtc_setting, const std::string& folder);

/// Returns the kernels that `compiler` makes with these options, from the cache in `folder` or compiled.
/// Throws Error.
std::string compiled_kernels(const class Nvrtc& compiler, std::vector<std::string> options,
                             const std::optional<ReduceKernel>& reduction, const std::string& folder);

}  // namespace pw::cuda
