#include "xacc/runtime/gpu/gpu.h"

#include <memory>
#include <string>

#include "device/gpu_code.h"
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

int count_of(const Driver& driver) {
  int count = 0;
  return driver.cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

/// Loads the driver of the first kind of GPUs that are here. Returns null if there are none; the reasons of
/// all kinds are in `why`.
const Driver* load_driver(std::string& why) {
  for (const pw_device_kind kind : pw::kGpuKinds) {
    std::string why_not;
    std::unique_ptr<const Driver> driver = pw::load_gpu_driver(kind, why_not);
    if (driver != nullptr && count_of(*driver) > 0) return driver.release();  // kept, as it has threads
    if (driver != nullptr) why_not = text(driver->library, " shows no GPU; ", driver->vendor.why_no_gpu);
    why += (why.empty() ? "" : ", and ") + why_not;
  }
  return nullptr;
}

/// Loads the driver once, and keeps it.
const Driver* driver_or_none(std::string& why) {
  static std::string why_none;
  static const Driver* const driver = load_driver(why_none);
  why = why_none;
  return driver;
}

/// This rank's GPU if the program chooses none: the one that Peerway assigns.
int usual_gpu() {
  std::string why;
  static const pw_device any{driver_or_none(why)->vendor.kind, -1};
  static const int usual = program().context.allocate(any, 256).device().index;
  return usual;
}

/// Whether this process can compute on a GPU; else `why` says why not.
bool is_usable(std::string& why) {
  const Driver* const driver = driver_or_none(why);
  return driver != nullptr && pw::load_gpu_compiler(driver->vendor.kind, why) != nullptr;
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
  driver.cuDeviceGetAttribute(&processors_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal);
}

void Gpu::enter() const {
  thread_local bool entered = false;
  if (entered) return;
  check(driver.cuCtxPushCurrent(context_), "entering the context of a GPU");
  entered = true;
}

void Gpu::check(int status, const char* action) const {
  if (status != CUDA_SUCCESS) refuse(action, " of ", name(), ": ", driver.text(status));
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
  const Driver* const driver = driver_or_none(why);
  return driver == nullptr ? 0 : count_of(*driver);
}

bool sees_amd_gpus() {
  std::string why;
  const Driver* const driver = driver_or_none(why);
  return driver != nullptr && driver->vendor.kind == PW_HIP;
}

}  // namespace pwx

extern "C" int pwx_gpu(void) {
  static const pwx_where start{"start", 0};
  static const int is_gpu = pwx::guarded(&start, [] { return pwx::gpu() != nullptr ? 1 : 0; });
  return is_gpu;
}
