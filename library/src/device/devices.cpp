// The devices of this process, and code that all kinds share.
#include <unistd.h>

#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "device/device.h"
#include "device/kinds.h"

namespace pw {
namespace {

struct Devices {
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> all;
  std::vector<std::string> why_none;  // by kind

  Devices() {
    for (const DeviceKind& kind : device_kinds()) {
      std::string& why = why_none.emplace_back();
      try {
        for (auto& device : kind.find(why)) owned.push_back(std::move(device));
      } catch (const Error& error) {
        why = error.what();
      }
    }
    for (const auto& device : owned) all.push_back(device.get());
  }
};

// Never destroyed, because at the end of the process the driver may already be gone.
const Devices& all_devices() {
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

std::string to_string(DeviceId id) {
  if (id.kind == PW_HOST) return "host";
  const auto kind = static_cast<size_t>(id.kind);  // a program may pass any number
  return kind < device_kinds().size() ? format("{}:{}", device_kinds()[kind].name, id.index)
                                      : format("of kind {}", kind);
}

std::span<Device* const> devices() { return all_devices().all; }

Device& host_device() { return *all_devices().all.front(); }

const std::string& why_none(pw_device_kind kind) {
  static const std::string unknown = "this library knows no such kind of device";
  const auto& reasons = all_devices().why_none;
  return static_cast<size_t>(kind) < reasons.size() ? reasons[kind] : unknown;
}

Device& device(DeviceId id) {
  std::string names;
  for (Device* candidate : devices()) {
    if (candidate->id() == id) return *candidate;
    names += (names.empty() ? "" : ", ") + to_string(candidate->id());
  }
  const std::string& why = why_none(id.kind);
  throw Error(PW_UNAVAILABLE, format("there is no device {}; this process has {}{}{}", to_string(id), names,
                                     why.empty() ? "" : ". Why there is none of this kind: ", why));
}

}  // namespace pw
