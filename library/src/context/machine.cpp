#include "context/machine.h"

#include <sched.h>
#include <unistd.h>

#include "base/format.h"
#include "base/setting.h"
#include "device/device.h"
#include "device/kinds.h"
#include "route/table.h"

namespace pw {

std::map<std::string, std::string> machine() {
  std::map<std::string, std::string> facts;
  facts["cpu"] = host_device().name();
  facts["cores"] = std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
  for (Device* device : devices())
    if (device->id().kind != PW_HOST) facts[to_string(device->id())] = device->name();
  // Ranks that see a device each use the table that was measured with all of them.
  for (const DeviceKind& kind : device_kinds()) {
    const auto names = kind.names_on_host == nullptr ? std::vector<std::string>() : kind.names_on_host();
    for (size_t i = 0; i < names.size(); ++i) facts[format("{}:{}", kind.name, i)] = names[i];
  }
  return facts;
}

std::string default_table_file() {
  return format("{}/routes/{}.json", config_home(), route::machine_hash(machine()));
}

std::string default_rules_file() { return config_home() + "/rules.json"; }

}  // namespace pw
