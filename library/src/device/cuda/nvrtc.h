// NVIDIA's run-time compiler, loaded at run time, or AMD's, whose functions are like it. Without it there are
// no copy kernels; everything else works.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/setting.h"

namespace pw::settings {

extern const PathSetting nvrtc_library;

}  // namespace pw::settings

namespace pw::cuda {

/// One file of device code. The first of a list is compiled; the others are what it includes.
struct KernelSource {
  const char* name;
  const char* text;
};

class Nvrtc {
 public:
  enum class Kind : uint8_t { nvrtc, hiprtc };

  /// Loads the first of `candidates` that can be loaded. Returns null if there is none, with the reason and
  /// the remedy in `why`.
  static std::unique_ptr<Nvrtc> load(std::span<const std::string> candidates, std::string& why,
                                     Kind kind = Kind::nvrtc);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] std::string_view name() const { return kind_ == Kind::nvrtc ? "nvrtc" : "hiprtc"; }
  [[nodiscard]] const std::string& library() const { return library_; }
  [[nodiscard]] std::string version() const;  ///< "13.0"

  /// Returns NVRTC's options that compile code for a GPU of that capability (90 for 9.0), in that version of
  /// C++: to machine code if this NVRTC knows the GPU, else to PTX for the newest GPU it knows, which the
  /// driver translates.
  [[nodiscard]] std::vector<std::string> options(int capability, std::string_view standard = "c++17") const;

  /// Returns machine code or, from NVRTC, perhaps PTX, for cuModuleLoadData. Throws Error with the compiler's
  /// log; without an Error, that goes to `log` if it is not null.
  [[nodiscard]] std::string compile(std::span<const KernelSource> sources,
                                    std::span<const std::string> options, std::string* log = nullptr) const;

 private:
  struct Api;
  Nvrtc() = default;
  std::shared_ptr<const Api> api_;
  std::string library_;
  Kind kind_ = Kind::nvrtc;
};

/// Returns the files to try as NVRTC: only `setting` if it is not empty; else the names that the system's
/// loader knows, then the usual folders of the toolkit and of the wheels of an active virtual environment.
std::vector<std::string> nvrtc_candidates(const std::string& setting);

/// Returns the text of library/src/device/cuda/kernels, which the build embeds.
std::span<const KernelSource> kernel_sources();

}  // namespace pw::cuda
