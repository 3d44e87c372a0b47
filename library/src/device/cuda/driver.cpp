#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/format.h"
#include "base/status.h"

namespace pw::settings {

const PathSetting cuda_library{"cuda_library", "",
                               "The CUDA driver library. Empty: libcuda.so.1 of the system."};

}  // namespace pw::settings

namespace pw::cuda {
namespace {

std::string why_no_init(const Driver& driver, CUresult result) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
      return format("the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES is {}); check nvidia-smi",
                    visible == nullptr ? std::string("not set") : format("\"{}\"", visible));
    case CUDA_ERROR_STUB_LIBRARY:
      return format(
          "{} is the stub library of a CUDA toolkit, not the driver; take the stubs folder out of "
          "LD_LIBRARY_PATH",
          driver.library);
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return format(
          "{} and the kernel module of the NVIDIA driver are of different versions; reboot after an update",
          driver.library);
    default:
      return format("the NVIDIA driver does not start: cuInit gives {}; check nvidia-smi",
                    driver.text(result));
  }
}

}  // namespace

std::unique_ptr<const Driver> Driver::load(const std::string& library, std::string& why) {
  auto driver = std::make_unique<Driver>();
  driver->library = library.empty() ? "libcuda.so.1" : library;
  void* handle = dlopen(driver->library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    why = library.empty()
              ? format(
                    "libcuda.so.1 was not found: no NVIDIA driver on this node, or none that this container "
                    "is given ({})",
                    dlerror())
              : format("{}, which the setting cuda_library names, cannot be loaded ({})", library, dlerror());
    return nullptr;
  }
  std::string missing;
  const auto find = [handle](auto& pointer, const char* symbol) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(handle, symbol));
    return pointer != nullptr;
  };
  const auto resolve = [&](auto& pointer, const char* symbol) {
    if (!find(pointer, symbol) && missing.empty()) missing = symbol;
  };
#define PW_CUDA_FIND(name, symbol, ...) find(driver->name, symbol);
  PW_CUDA_NEWER_FUNCTIONS(PW_CUDA_FIND)
#undef PW_CUDA_FIND
#define PW_CUDA_RESOLVE(name, symbol, ...) resolve(driver->name, symbol);
  PW_CUDA_FUNCTIONS(PW_CUDA_RESOLVE)
#undef PW_CUDA_RESOLVE
  // Checks the version first: an old driver lacks functions, and its version says more than the name of the
  // first missing function.
  if (driver->cuDriverGetVersion == nullptr || driver->cuDriverGetVersion(&driver->version) != CUDA_SUCCESS) {
    why = format("{} is not a CUDA driver (it has no cuDriverGetVersion)", driver->library);
    return nullptr;
  }
  if (driver->version < kOldestDriver) {
    why = format(
        "the NVIDIA driver supports CUDA {}; Peerway needs {} (driver 525) or newer: update the driver",
        version_text(driver->version), version_text(kOldestDriver));
    return nullptr;
  }
  if (!missing.empty()) {
    why = format("{} (CUDA {}) has no {}; reinstall the driver", driver->library,
                 version_text(driver->version), missing);
    return nullptr;
  }
  if (const CUresult result = driver->cuInit(0); result != CUDA_SUCCESS) {
    why = why_no_init(*driver, result);
    return nullptr;
  }
  return driver;
}

std::string Driver::device_name(int ordinal) const { return format("{}:{}", vendor.device, ordinal); }

bool Driver::has_conditional_nodes() const {
  bool all = true;
#define PW_CUDA_HAS(name, symbol, ...) all = all && name != nullptr;
  PW_CUDA_NEWER_FUNCTIONS(PW_CUDA_HAS)
#undef PW_CUDA_HAS
  return all;
}

std::string Driver::text(CUresult result) const {
  const char* name = nullptr;
  const char* meaning = nullptr;
  if (cuGetErrorName == nullptr || cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return format("{} error {}", vendor.api, result);
  if (cuGetErrorString(result, &meaning) != CUDA_SUCCESS || meaning == nullptr) return name;
  return format("{} ({})", name, meaning);
}

pw_status Driver::status(CUresult result) {
  if (result == CUDA_SUCCESS) return PW_OK;
  return result == CUDA_ERROR_OUT_OF_MEMORY ? PW_NO_MEMORY : PW_DEVICE;
}

void Driver::check(CUresult result, std::string_view call) const {
  if (result != CUDA_SUCCESS) throw Error(status(result), format("{}: {}", call, text(result)));
}

Current::Current(const Driver& driver, CUcontext context) : driver_(driver) {
  CUcontext now = nullptr;
  if (driver.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == context) return;
  pushed_ = driver.cuCtxPushCurrent(context) == CUDA_SUCCESS;  // the next call reports a failure
}

Current::~Current() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.cuCtxPopCurrent(&popped);
}

std::string version_text(int version) { return format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace pw::cuda
