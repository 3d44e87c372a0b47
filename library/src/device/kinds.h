// The kinds of device that this library is built with.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace pw {

struct DeviceKind {
  std::string_view name;  ///< in keys, tables, settings: "host", "cuda"
  /// The devices of this kind that the process may use; none where something is missing, with the reason and
  /// what to do in `why_none`.
  std::vector<std::unique_ptr<Device>> (*find)(std::string& why_none);
  /// The environment variable that says which of them a process is shown; null: there is none.
  const char* shown_by = nullptr;
};

/// In the order of pw_device_kind, the host first.
std::span<const DeviceKind> device_kinds();

}  // namespace pw
