#include "device/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "base/packages.h"
#include "base/status.h"

namespace pw::settings {

const PathSetting nvrtc_library{
    "nvrtc_library", "", "The NVRTC library. Empty: that of the toolkit, the system or the Python wheel."};

}  // namespace pw::settings

namespace pw::cuda {

namespace {

// hiprtc.h declares the functions of nvrtc.h with another prefix, without those for PTX and architectures.
std::string name_in_hiprtc(std::string_view name) {
  if (name.find("PTX") != name.npos || name.find("Archs") != name.npos) return {};
  if (name == "nvrtcGetCUBIN") return "hiprtcGetCode";
  if (name == "nvrtcGetCUBINSize") return "hiprtcGetCodeSize";
  return "hip" + std::string(name.substr(2));
}

}  // namespace

// Declarations from nvrtc.h; library/tests/python/test_device_code.py compares them with that file.
struct Nvrtc::Api {
  using Program = struct _nvrtcProgram*;
  int (*nvrtcVersion)(int*, int*) = nullptr;
  int (*nvrtcGetNumSupportedArchs)(int*) = nullptr;
  int (*nvrtcGetSupportedArchs)(int*) = nullptr;
  int (*nvrtcCreateProgram)(Program*, const char*, const char*, int, const char* const*,
                            const char* const*) = nullptr;
  int (*nvrtcDestroyProgram)(Program*) = nullptr;
  int (*nvrtcCompileProgram)(Program, int, const char* const*) = nullptr;
  int (*nvrtcGetCUBINSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetCUBIN)(Program, char*) = nullptr;
  int (*nvrtcGetPTXSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetPTX)(Program, char*) = nullptr;
  int (*nvrtcGetProgramLogSize)(Program, size_t*) = nullptr;
  int (*nvrtcGetProgramLog)(Program, char*) = nullptr;
  const char* (*nvrtcGetErrorString)(int) = nullptr;

  // Returns the first function that the library lacks, or an empty text.
  std::string resolve(void* handle, Kind kind) {
    std::string missing;
    const auto get = [&](auto& pointer, const char* name) {
      const std::string symbol = kind == Kind::nvrtc ? name : name_in_hiprtc(name);
      if (symbol.empty()) return;
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(handle, symbol.c_str()));
      if (pointer == nullptr) missing = symbol;
    };
    get(nvrtcVersion, "nvrtcVersion");
    get(nvrtcGetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
    get(nvrtcGetSupportedArchs, "nvrtcGetSupportedArchs");
    get(nvrtcCreateProgram, "nvrtcCreateProgram");
    get(nvrtcDestroyProgram, "nvrtcDestroyProgram");
    get(nvrtcCompileProgram, "nvrtcCompileProgram");
    get(nvrtcGetCUBINSize, "nvrtcGetCUBINSize");
    get(nvrtcGetCUBIN, "nvrtcGetCUBIN");
    get(nvrtcGetPTXSize, "nvrtcGetPTXSize");
    get(nvrtcGetPTX, "nvrtcGetPTX");
    get(nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize");
    get(nvrtcGetProgramLog, "nvrtcGetProgramLog");
    get(nvrtcGetErrorString, "nvrtcGetErrorString");
    return missing;
  }
};

namespace {

// NVRTC 13.0 opens its built-ins by bare name, and does not find them in its own folder unless they are
// loaded already.
void preload_builtins(const std::string& library) {
  const size_t slash = library.rfind('/');
  if (slash == std::string::npos) return;
  for (const std::string& path : matching_files(library.substr(0, slash) + "/libnvrtc-builtins.so.*"))
    dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

}  // namespace

std::vector<std::string> nvrtc_candidates(const std::string& setting) {
  if (!setting.empty()) return {setting};
  std::vector<std::string> paths = {"libnvrtc.so.13", "libnvrtc.so.12"};
  const auto add = [&paths](const std::string& pattern) {
    for (std::string& path : matching_files(pattern)) paths.push_back(std::move(path));
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable)) add(std::string(home) + "/lib64/libnvrtc.so.1[23]");
  add("/usr/local/cuda/lib64/libnvrtc.so.1[23]");
  for (const std::string& folder : package_folders()) {
    add(folder + "/nvidia/cu13/lib/libnvrtc.so.13");
    add(folder + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  }
  if (const char* home = std::getenv("CONDA_PREFIX")) add(std::string(home) + "/lib/libnvrtc.so.1[23]");
  return paths;
}

std::unique_ptr<Nvrtc> Nvrtc::load(std::span<const std::string> candidates, std::string& why, Kind kind) {
  std::string tried;
  for (const std::string& candidate : candidates) {
    preload_builtins(candidate);
    void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      tried += format("{}{} ({})", tried.empty() ? "" : "; ", candidate, dlerror());
      continue;
    }
    auto api = std::make_shared<Api>();
    if (const std::string missing = api->resolve(handle, kind); !missing.empty()) {
      tried += format("{}{} (it has no {})", tried.empty() ? "" : "; ", candidate, missing);
      continue;
    }
    std::unique_ptr<Nvrtc> nvrtc(new Nvrtc);
    nvrtc->api_ = std::move(api);
    nvrtc->library_ = candidate;
    nvrtc->kind_ = kind;
    return nvrtc;
  }
  why = format("{}, which compiles kernels, was not found; install {}, or point the setting {}. Tried: {}",
               kind == Kind::nvrtc ? "NVRTC" : "HIPRTC",
               kind == Kind::nvrtc ? "the wheel nvidia-cuda-nvrtc" : "ROCm's package hip-runtime-amd",
               kind == Kind::nvrtc ? "nvrtc_library (PEERWAY_NVRTC_LIBRARY) at libnvrtc.so"
                                   : "hiprtc_library (PEERWAY_HIPRTC_LIBRARY) at libhiprtc.so",
               tried.empty() ? "nothing" : tried);
  return nullptr;
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  api_->nvrtcVersion(&major, &minor);
  return format("{}.{}", major, minor);
}

std::vector<std::string> Nvrtc::options(int capability, std::string_view standard) const {
  int count = 0;
  api_->nvrtcGetNumSupportedArchs(&count);
  std::vector<int> known(static_cast<size_t>(std::max(count, 0)));
  if (count > 0) api_->nvrtcGetSupportedArchs(known.data());
  const bool knows = std::find(known.begin(), known.end(), capability) != known.end();
  int newest = capability;
  if (!knows) {
    newest = 0;
    for (int arch : known)
      if (arch < capability) newest = std::max(newest, arch);
    if (newest == 0)
      throw Error(PW_UNAVAILABLE, format("{} (version {}) has no code for a GPU of compute capability {}.{}",
                                         library_, version(), capability / 10, capability % 10));
  }
  return {format("-arch={}_{}", knows ? "sm" : "compute", newest), format("--std={}", standard)};
}

std::string Nvrtc::compile(std::span<const KernelSource> sources, std::span<const std::string> options,
                           std::string* log) const {
  std::vector<const char*> texts, names, flags;
  for (const KernelSource& header : sources.subspan(1)) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  for (const std::string& option : options) flags.push_back(option.c_str());
  const auto failed = [&](int result, const std::string& why) {
    return Error(PW_DEVICE,
                 format("{} (version {}) cannot compile {}: {}{}{}", library_, version(), sources[0].name,
                        api_->nvrtcGetErrorString(result), why.empty() ? "" : "\n", why));
  };
  Api::Program program = nullptr;
  int result = api_->nvrtcCreateProgram(&program, sources[0].text, sources[0].name,
                                        static_cast<int>(names.size()), texts.data(), names.data());
  if (result != 0) throw failed(result, {});
  struct Destroy {
    const Api& api;
    Api::Program program;
    ~Destroy() { api.nvrtcDestroyProgram(&program); }
  } destroy{*api_, program};
  result = api_->nvrtcCompileProgram(program, static_cast<int>(flags.size()), flags.data());
  size_t size = 0;
  if (result != 0 || log != nullptr) {
    api_->nvrtcGetProgramLogSize(program, &size);
    std::string program_log(size, '\0');
    if (size > 0) api_->nvrtcGetProgramLog(program, program_log.data());
    if (result != 0) throw failed(result, program_log);
    *log = std::move(program_log);
  }
  if (api_->nvrtcGetCUBINSize(program, &size) == 0 && size > 0) {
    std::string image(size, '\0');
    if ((result = api_->nvrtcGetCUBIN(program, image.data())) != 0) throw failed(result, {});
    return image;
  }
  if (kind_ == Kind::hiprtc) throw failed(result, "it made no code");
  if ((result = api_->nvrtcGetPTXSize(program, &size)) != 0) throw failed(result, {});
  std::string image(size, '\0');
  if ((result = api_->nvrtcGetPTX(program, image.data())) != 0) throw failed(result, {});
  return image;
}

}  // namespace pw::cuda
