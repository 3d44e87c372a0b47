// A plugin of a NIC (peerway/nic.h), loaded and checked.
#pragma once

#include <memory>
#include <string>

#include "peerway/nic.h"

namespace pw::nic {

class Plugin {
 public:
  /// Loads the library at `path`. Throws Error if it is not a plugin of this ABI, and says what was found.
  static std::shared_ptr<const Plugin> load(const std::string& path);
  /// The same for a plugin that is part of this program; `ops` must outlive it.
  static std::shared_ptr<const Plugin> of(const pw_nic_ops* ops, const std::string& path);
  ~Plugin();
  Plugin(const Plugin&) = delete;

  [[nodiscard]] const pw_nic_ops& ops() const { return ops_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  explicit Plugin(std::string path) : path_(std::move(path)) {}
  void set_ops(const pw_nic_ops* ops);

  std::string path_;
  std::string name_;
  void* library_ = nullptr;
  pw_nic_ops ops_{};  ///< entries that the plugin was built without are null
};

}  // namespace pw::nic
