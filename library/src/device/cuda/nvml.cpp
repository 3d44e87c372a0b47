#include "device/cuda/nvml.h"

#include <dlfcn.h>

#include <iterator>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include "base/format.h"

namespace pw::cuda {
namespace {

// The part of NVML's interface that is used, with the names and values of nvml.h.
using nvmlDevice_t = void*;  // nvml.h: a pointer to a struct that it does not define
constexpr int NVML_SUCCESS = 0;
constexpr int NVML_ERROR_NO_PERMISSION = 4;
constexpr int NVML_P2P_CAPS_INDEX_READ = 0;
constexpr int NVML_P2P_CAPS_INDEX_WRITE = 1;
constexpr int NVML_P2P_CAPS_INDEX_NVLINK = 2;
constexpr int NVML_P2P_STATUS_OK = 0;

// Texts for nvmlGpuP2PStatus_t, from 1 on.
constexpr const char* kWhyNoPeerAccess[] = {
    "the chipset does not forward it",         "this model of GPU does not support it",
    "the PCIe topology does not forward it",   "a setting of the driver (regkey) disables it",
    "the driver does not support it for them",
};

struct Nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, nvmlDevice_t*) = nullptr;
  int (*handle_by_uuid)(const char*, nvmlDevice_t*) = nullptr;
  int (*name)(nvmlDevice_t, char*, unsigned) = nullptr;
  int (*mig_mode)(nvmlDevice_t, unsigned* current, unsigned* pending) = nullptr;
  int (*peer_status)(nvmlDevice_t, nvmlDevice_t, int, int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  std::string why_none;  // empty if NVML can be used
};

Nvml load(const std::string& library) {
  Nvml nvml;
  const std::string name = library.empty() ? "libnvidia-ml.so.1" : library;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    nvml.why_none = format("NVML cannot be loaded ({})", dlerror());
    return nvml;
  }
  const auto resolve = [&](auto& pointer, const char* symbol) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(handle, symbol));
    if (pointer == nullptr) nvml.why_none = format("{} has no {}", name, symbol);
  };
  resolve(nvml.init, "nvmlInit_v2");
  resolve(nvml.count, "nvmlDeviceGetCount_v2");
  resolve(nvml.handle_by_index, "nvmlDeviceGetHandleByIndex_v2");
  resolve(nvml.handle_by_uuid, "nvmlDeviceGetHandleByUUID");
  resolve(nvml.name, "nvmlDeviceGetName");
  resolve(nvml.mig_mode, "nvmlDeviceGetMigMode");
  resolve(nvml.peer_status, "nvmlDeviceGetP2PStatus");
  resolve(nvml.error_text, "nvmlErrorString");
  if (!nvml.why_none.empty()) return nvml;
  if (const int result = nvml.init(); result != NVML_SUCCESS)
    nvml.why_none = format("NVML does not start: {}", nvml.error_text(result));
  return nvml;
}

PeerAccess refused(std::string why_not) { return {-1, false, {}, std::move(why_not)}; }

// CUDA and NVML write the UUID of a MIG slice and of a whole GPU alike except for the prefix.
int handle_of(const Nvml& nvml, const Uuid& uuid, nvmlDevice_t& device, bool& is_slice) {
  const std::string text = uuid_text(uuid);
  is_slice = false;
  const int result = nvml.handle_by_uuid(text.c_str(), &device);
  if (result == NVML_SUCCESS) return result;
  is_slice = nvml.handle_by_uuid(("MIG" + text.substr(3)).c_str(), &device) == NVML_SUCCESS;
  return is_slice ? NVML_SUCCESS : result;
}

PeerAccess access(const Nvml& nvml, const Uuid& gpu, const Uuid& hidden) {
  const std::string name = uuid_text(hidden);
  if (!nvml.why_none.empty())
    return refused(format(
        "{} is not visible to this process, and what joins it to this rank's GPU is not known: {}. Let "
        "CUDA_VISIBLE_DEVICES name the GPUs of all ranks of the host, or install the driver's NVML",
        name, nvml.why_none));
  nvmlDevice_t own = nullptr;
  nvmlDevice_t other = nullptr;
  bool own_is_slice = false;
  bool other_is_slice = false;
  int result = handle_of(nvml, gpu, own, own_is_slice);
  if (result == NVML_SUCCESS) result = handle_of(nvml, hidden, other, other_is_slice);
  if (result == NVML_SUCCESS && (own_is_slice || other_is_slice))
    return refused(format("{} is a MIG slice: the driver gives slices no peer access",
                          uuid_text(own_is_slice ? gpu : hidden)));
  if (result != NVML_SUCCESS)
    return refused(format(
        "this process may not open {} (NVML: {}), as where a control group keeps the GPUs of tasks apart; "
        "with Slurm, ask for --gres-flags=allow-task-sharing, or for --gpus-per-node in place of "
        "--gpus-per-task",
        name, result == NVML_ERROR_NO_PERMISSION ? "no permission" : nvml.error_text(result)));
  for (const int direction : {NVML_P2P_CAPS_INDEX_READ, NVML_P2P_CAPS_INDEX_WRITE}) {
    int status = -1;
    result = nvml.peer_status(own, other, direction, &status);
    if (result == NVML_SUCCESS && status == NVML_P2P_STATUS_OK) continue;
    const bool known = result == NVML_SUCCESS && status >= 1 && status <= std::ssize(kWhyNoPeerAccess);
    return refused(format(
        "{} and this rank's GPU {} have no peer access: {} (nvidia-smi topo -p2p r; IOMMU and ACS settings)",
        name, uuid_text(gpu), known ? kWhyNoPeerAccess[status - 1] : "the driver does not say why"));
  }
  int nvlink = -1;
  const bool by_nvlink = nvml.peer_status(own, other, NVML_P2P_CAPS_INDEX_NVLINK, &nvlink) == NVML_SUCCESS &&
                         nvlink == NVML_P2P_STATUS_OK;
  return {-1, true, by_nvlink ? "nvlink" : "pcie", {}};
}

const Nvml& loaded(const std::string& library) {
  static auto& mutex = *new std::mutex;  // never destroyed, because it may be used at exit
  static auto& libraries = *new std::map<std::string, Nvml>;
  const std::lock_guard lock(mutex);
  auto nvml = libraries.find(library);
  if (nvml == libraries.end()) nvml = libraries.emplace(library, load(library)).first;
  return nvml->second;
}

}  // namespace

PeerAccess access_to_hidden(const std::string& library, const Uuid& gpu, const Uuid& hidden) {
  return access(loaded(library), gpu, hidden);
}

std::vector<std::string> names_of_gpus(const std::string& library) {
  const Nvml& nvml = loaded(library);
  unsigned count = 0;
  if (!nvml.why_none.empty() || nvml.count(&count) != NVML_SUCCESS) return {};
  std::vector<std::string> names;
  for (unsigned index = 0; index < count; ++index) {
    nvmlDevice_t device = nullptr;
    if (nvml.handle_by_index(index, &device) != NVML_SUCCESS) continue;  // it may not be opened
    unsigned has_slices = 0, pending = 0;
    if (nvml.mig_mode(device, &has_slices, &pending) == NVML_SUCCESS && has_slices != 0) return {};
    char name[256] = {};
    if (nvml.name(device, name, sizeof name - 1) == NVML_SUCCESS) names.emplace_back(name);
  }
  return names;
}

}  // namespace pw::cuda
