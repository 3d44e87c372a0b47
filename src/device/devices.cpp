// The list of devices, the one place that knows which kinds there are, and what all kinds share.
#include <unistd.h>

#include <utility>

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "device/cuda/cuda.h"
#include "device/device.h"
#include "device/host/host.h"

namespace pw {
namespace {

struct Devices {
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> all;
  std::string why_no_cuda;

  Devices() {
    owned.push_back(std::make_unique<HostDevice>());
    const std::string cache = config("cache");
    const cuda::Options options{.driver_library = config("cuda_library"),
                                .nvrtc_library = config("nvrtc_library"),
                                .cache_folder = (cache.empty() ? cache_home() : cache) + "/kernels"};
    try {
      for (auto& found : cuda::make_devices(options, why_no_cuda)) owned.push_back(std::move(found));
    } catch (const Error& error) {
      why_no_cuda = error.what();
    }
    for (const auto& device : owned) all.push_back(device.get());
  }
};

// Never destroyed: at the end of the process the driver may be gone before us.
const Devices& found() {
  static const auto* devices = new Devices;
  return *devices;
}

}  // namespace

Export Device::describe(const Allocation& allocation, const void* address) {
  Export exported;
  exported.handle = allocation.handle;
  exported.allocation = allocation.id;
  exported.bytes = allocation.bytes;
  exported.offset = static_cast<uint64_t>(static_cast<const std::byte*>(address) - allocation.base);
  exported.process = getpid();
  exported.address = reinterpret_cast<uint64_t>(address);
  return exported;
}

std::string to_string(DeviceId id) { return id.kind == PW_HOST ? "host" : format("cuda:{}", id.index); }

std::span<Device* const> devices() { return found().all; }

Device& host_device() { return *found().all.front(); }

const std::string& why_no_cuda() { return found().why_no_cuda; }

Device& device(DeviceId id) {
  std::string names;
  for (Device* candidate : devices()) {
    if (candidate->id() == id) return *candidate;
    names += (names.empty() ? "" : ", ") + to_string(candidate->id());
  }
  const bool no_cuda = id.kind == PW_CUDA && !why_no_cuda().empty();
  throw Error(PW_UNAVAILABLE, format("peerway: there is no device {}; this process has {}{}{}", to_string(id),
                                     names, no_cuda ? ". No CUDA: " : "", no_cuda ? why_no_cuda() : ""));
}

}  // namespace pw
