// The list of this process's devices. A new kind of device is one more line here.
#include "base/format.h"
#include "base/status.h"
#include "device/device.h"
#include "device/host/host.h"

namespace pw {
namespace {

struct Devices {
  HostDevice host;
  std::vector<Device *> all{&host};
  std::string why_no_cuda = "this build has no CUDA device";
};

Devices &found() {
  static Devices devices;
  return devices;
}

}  // namespace

std::string to_string(DeviceId id) { return id.kind == PW_HOST ? "host" : format("cuda:{}", id.index); }

std::span<Device *const> devices() { return found().all; }
Device &host_device() { return found().host; }
const std::string &why_no_cuda() { return found().why_no_cuda; }

Device &device(DeviceId id) {
  std::string names;
  for (Device *candidate : devices()) {
    if (candidate->id() == id) return *candidate;
    names += (names.empty() ? "" : ", ") + to_string(candidate->id());
  }
  throw Error(PW_UNAVAILABLE, format("peerway: there is no device {}; this process has {}{}", to_string(id), names,
                                     id.kind == PW_CUDA && !why_no_cuda().empty() ? " (" + why_no_cuda() + ")" : ""));
}

}  // namespace pw
