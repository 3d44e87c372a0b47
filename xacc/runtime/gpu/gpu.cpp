#include "xacc/runtime/gpu/gpu.h"

#include <memory>
#include <string>

#include "device/cuda/nvrtc.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/device_loops.h"
#include "xacc/runtime/gpu/kernels.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace settings {

const pw::ChoiceSetting<Acc> acc{
    "acc", "auto|gpu|host", "auto",
    "Where loops of `peerway cc` with acc directives run. auto: on a GPU where there is one."};
const pw::ChoiceSetting<int> acc_first_device{
    "acc_first_device", "0|1", "0",
    "The number of the first GPU in acc_set_device_num: 1 for programs written for the Omni compiler."};

}  // namespace settings

namespace {

using namespace pw::cuda;

int chosen_number = -1;  // set by choose_gpu
int in_use = -1;         // the GPU whose context this process has

/// Loads the driver once, and keeps it.
const Driver* driver_or_none(std::string& why) {
  static std::string why_none;
  static const Driver* const driver = Driver::load(pw::settings::cuda_library.text(), why_none).release();
  why = why_none;
  return driver;
}

/// This rank's GPU if the program chooses none: the one that Peerway assigns.
int usual_gpu() {
  static const int usual = program().context.allocate(peerway::cuda(), 256).device().index;
  return usual;
}

/// Whether this process can compute on a GPU; else `why` says why not.
bool is_usable(std::string& why) {
  if (driver_or_none(why) == nullptr) return false;
  if (gpu_count() == 0) {
    why = "the NVIDIA driver shows no GPU; check CUDA_VISIBLE_DEVICES and nvidia-smi";
    return false;
  }
  return Nvrtc::load(nvrtc_candidates(pw::settings::nvrtc_library.text()), why) != nullptr;
}

bool decide() {
  const auto where = settings::acc.value();
  if (where == settings::Acc::host) return false;
  std::string why;
  const bool usable = is_usable(why);
  if (!usable && where == settings::Acc::gpu) refuse("the setting acc asks for a GPU, but ", why);
  return usable;
}

std::unique_ptr<Gpu> open_gpu() {
  if (!computes_on_gpu()) return nullptr;
  std::string why;
  in_use = chosen_gpu();
  return std::make_unique<Gpu>(*driver_or_none(why), in_use);
}

const std::unique_ptr<Gpu>& decided() {
  static const auto& gpu = *new std::unique_ptr<Gpu>(open_gpu());  // outlives atexit
  return gpu;
}

}  // namespace

int first_device() { return settings::acc_first_device.value(); }

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

void Gpu::check(int status, const char* action) const {
  if (status != CUDA_SUCCESS) refuse(action, " of cuda:", ordinal, ": ", driver.text(status));
}

int Gpu::attribute(int which) const {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, ordinal) == CUDA_SUCCESS ? value : 0;
}

bool computes_on_gpu() {
  static const bool usable = decide();
  return usable;
}

const Gpu* gpu() {
  static bool ready = false;
  const Gpu* const device = decided().get();
  if (device != nullptr && !ready) {
    ready = true;  // load_kernels calls this function again
    load_kernels(kernels_of_units());
    prepare_loops();
  }
  return device;
}

const Gpu& the_gpu() {
  const Gpu* device = gpu();
  if (device == nullptr) throw Failure("this process computes on its CPUs");
  device->enter();
  return *device;
}

void choose_gpu(int number) {
  if (!computes_on_gpu()) return;
  if (number >= gpu_count())
    refuse("acc_set_device_num(", number + first_device(), "), but there are ", gpu_count(),
           " GPUs, counted from ", first_device(),
           first_device() == 0 ? "; set PEERWAY_ACC_FIRST_DEVICE=1 for a program that counts from 1" : "");
  if (in_use >= 0 && number != in_use)
    refuse("acc_set_device_num(", number + first_device(), "), but this process already uses device ",
           in_use + first_device(),
           ", and a process computes on one; choose it before the first acc directive that uses it, and "
           "start a process for each GPU");
  chosen_number = number;
}

int chosen_gpu() { return chosen_number >= 0 ? chosen_number : usual_gpu(); }

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
