#include "xacc/runtime/gpu.h"

#include <memory>
#include <string>

#include "base/config.h"
#include "device/cuda/nvrtc.h"
#include "xacc/runtime/failure.h"
#include "xacc/runtime/kernels.h"
#include "xacc/runtime/program.h"

namespace pwx {
namespace {

using namespace pw::cuda;

int chosen = -1;

/// Loaded once, and kept.
const Driver* driver_or_none(std::string& why) {
  static std::string why_none;
  static const Driver* const driver = Driver::load(pw::config("cuda_library"), why_none).release();
  why = why_none;
  return driver;
}

/// This rank's GPU where the program names none: the one that Peerway gives it.
int usual_gpu() { return program().context.allocate(peerway::cuda(), 256).device().index; }

std::unique_ptr<Gpu> find(std::string& why) {
  const Driver* driver = driver_or_none(why);
  if (driver == nullptr) return nullptr;
  if (gpu_count() == 0) {
    why = "the NVIDIA driver shows no GPU; check CUDA_VISIBLE_DEVICES and nvidia-smi";
    return nullptr;
  }
  if (Nvrtc::load(nvrtc_candidates(pw::config("nvrtc_library")), why) == nullptr) return nullptr;
  if (chosen >= gpu_count())
    refuse("acc_set_device_num(", chosen + first_device(), "), but there are ", gpu_count(),
           " GPUs, counted from ", first_device(),
           first_device() == 0 ? "; set PEERWAY_ACC_FIRST_DEVICE=1 for a program that counts from 1" : "");
  return std::make_unique<Gpu>(*driver, chosen >= 0 ? chosen : usual_gpu());
}

std::unique_ptr<Gpu> decide() {
  const std::string asked = pw::config("acc");
  if (asked == "host") return nullptr;
  std::string why;
  auto found = find(why);
  if (found == nullptr && asked == "gpu") refuse("the setting acc asks for a GPU, but ", why);
  return found;
}

const std::unique_ptr<Gpu>& decided() {
  static const auto& gpu = *new std::unique_ptr<Gpu>(decide());  // outlives atexit
  return gpu;
}

}  // namespace

int first_device() { return pw::config("acc_first_device") == "1" ? 1 : 0; }

Gpu::Gpu(const Driver& its_driver, int its_ordinal) : driver(its_driver), ordinal(its_ordinal) {
  check(driver.cuDevicePrimaryCtxRetain(&context_, ordinal), "the context of a GPU");
  processors_ = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  capability_ = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

void Gpu::enter() const {
  thread_local bool entered = false;
  if (entered) return;
  check(driver.cuCtxPushCurrent(context_), "entering the context of a GPU");
  entered = true;
}

void Gpu::check(int result, const char* what) const {
  if (result != CUDA_SUCCESS) refuse(what, " of cuda:", ordinal, ": ", driver.text(result));
}

int Gpu::attribute(int which) const {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, ordinal) == CUDA_SUCCESS ? value : 0;
}

const Gpu* gpu() {
  static bool ready = false;
  const Gpu* const found = decided().get();
  if (found != nullptr && !ready) {
    ready = true;  // what follows asks again
    load_kernels(kernels_of_units());
  }
  return found;
}

const Gpu& the_gpu() {
  const Gpu* found = gpu();
  if (found == nullptr) throw Failure("this process computes on its CPUs");
  found->enter();
  return *found;
}

void choose_gpu(int number) { chosen = number; }

int gpu_count() {
  std::string why;
  const Driver* driver = driver_or_none(why);
  int count = 0;
  if (driver != nullptr) driver->cuDeviceGetCount(&count);
  return count;
}

}  // namespace pwx

extern "C" int pwx_gpu(void) {
  static const pwx_where start{"start", 0};
  static const int is_gpu = pwx::guarded(&start, [] { return pwx::gpu() != nullptr ? 1 : 0; });
  return is_gpu;
}
