#include "nic/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/status.h"
#include "nic/nic_spec.h"
#include "nic/traced.h"

namespace pw::nic {
namespace {

// Returns the required entries that are missing: "put, get".
std::string missing_entries(const pw_nic_ops& ops) {
  const std::pair<const char*, bool> entries[] = {
      {"open", ops.open != nullptr},
      {"close", ops.close != nullptr},
      {"query", ops.query != nullptr},
      {"address", ops.address != nullptr},
      {"why", ops.why != nullptr},
      {"connect", ops.connect != nullptr},
      {"disconnect", ops.disconnect != nullptr},
      {"register_memory", ops.register_memory != nullptr},
      {"deregister_memory", ops.deregister_memory != nullptr},
      {"import_key", ops.import_key != nullptr},
      {"release_key", ops.release_key != nullptr},
      {"put", ops.put != nullptr},
      {"get", ops.get != nullptr},
      {"progress", ops.progress != nullptr},
  };
  std::string missing;
  for (const auto& [name, there] : entries)
    if (!there) missing += (missing.empty() ? "" : ", ") + std::string(name);
  return missing;
}

}  // namespace

// A plugin built with an older header has a shorter struct; the entries that it lacks stay null.
void Plugin::set_ops(const pw_nic_ops* ops) {
  const auto refuse = [this](const std::string& why) {
    return Error(PW_UNAVAILABLE, format("the NIC plugin {}: {}", path_, why));
  };
  if (ops == nullptr) throw refuse(PW_NIC_PLUGIN_SYMBOL "() returned NULL; it must return its pw_nic_ops");
  if (ops->abi != PW_NIC_ABI)
    throw refuse(
        format("it was built for version {} of peerway/nic.h, this Peerway has version {}; build it "
               "again with the header of this Peerway",
               ops->abi, PW_NIC_ABI));
  if (ops->size < offsetof(pw_nic_ops, open))
    throw refuse(
        format("its pw_nic_ops says that it has {} bytes; set size to sizeof(pw_nic_ops)", ops->size));
  std::memcpy(&ops_, ops, std::min<size_t>(ops->size, sizeof ops_));
  if (ops_.arm == nullptr) ops_.event = nullptr;  // a descriptor that cannot be armed is useless
  if (const std::string missing = missing_entries(ops_); !missing.empty())
    throw refuse(
        format("its pw_nic_ops has no {}; only the entries from put_strided on may be left out", missing));
  if (ops_.name != nullptr) name_.assign(ops_.name, strnlen(ops_.name, 2 * kLongestNicName));
  if (!is_nic_name(name_))
    throw refuse(format("its name is '{}'; a name has 1 to {} lower-case letters, digits and '-'", name_,
                        kLongestNicName));
  ops_ = traced(ops_, name_);
}

std::shared_ptr<const Plugin> Plugin::of(const pw_nic_ops* ops, const std::string& path) {
  const std::shared_ptr<Plugin> plugin(new Plugin(path));
  plugin->set_ops(ops);
  return plugin;
}

std::shared_ptr<const Plugin> Plugin::load(const std::string& path) {
  const std::shared_ptr<Plugin> plugin(new Plugin(path));
  plugin->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin->library_ == nullptr)
    throw Error(PW_UNAVAILABLE, format("the NIC plugin {} cannot be loaded: {}", path, dlerror()));
  const auto function =
      reinterpret_cast<pw_nic_plugin_function>(dlsym(plugin->library_, PW_NIC_PLUGIN_SYMBOL));
  if (function == nullptr)
    throw Error(PW_UNAVAILABLE, format("{} is not a NIC plugin: it has no function " PW_NIC_PLUGIN_SYMBOL
                                       "() (peerway/nic.h)",
                                       path));
  plugin->set_ops(function());
  return plugin;
}

Plugin::~Plugin() {
  if (library_ != nullptr) dlclose(library_);
}

}  // namespace pw::nic
