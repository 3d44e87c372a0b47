// The kinds of devices that this library is built with.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace pw {

struct DeviceKind {
  std::string_view name;  ///< used in keys, tables and settings: "host", "cuda", "hip"
  /// Returns the devices of this kind that the process may use. If there are none, `why_none` has the reason
  /// and what to do.
  std::vector<std::unique_ptr<Device>> (*find)(std::string& why_none);
  /// Returns the names of all devices of this kind on the host, in its numbering, if some may be hidden from
  /// this process; empty if none is, or if nothing tells. Null: devices of this kind cannot be hidden.
  std::vector<std::string> (*names_on_host)() = nullptr;
};

/// In the order of pw_device_kind, with the host first.
std::span<const DeviceKind> device_kinds();

}  // namespace pw
