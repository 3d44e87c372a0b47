// UCX's settings as Peerway starts it: the user's, and without shared memory where the user names no
// transports.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "path/ucx/library.h"

namespace pw::ucx {

using Settings = std::unique_ptr<ucp_abi::ucp_config_t, void (*)(ucp_abi::ucp_config_t*)>;

/// From the environment and UCX's files. Throws Error.
Settings read_settings(const Library& library);

/// What one of UCX's functions prints; nothing when there is no memory for it.
std::string printed(const std::function<void(FILE*)>& print);

}  // namespace pw::ucx
