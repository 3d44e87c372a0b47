// An identifier that all processes of one host share.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/setting.h"

namespace pw {
namespace settings {

extern const TextSetting host_id;

}  // namespace settings

/// The same value in processes that share a running kernel and a process-id namespace, where they can watch
/// one another and reach one another's memory. `simulated` sets apart processes that are to act as if they
/// did not.
uint64_t host_id(std::string_view simulated = {});

/// The same value in processes of one host that reach one another's abstract Unix sockets.
uint64_t network_id();

/// Lets processes of the same user read this process's memory and copy its descriptors. Both count as
/// tracing, which Yama restricts to parents, and the ranks of a job are siblings. The user ids are checked as
/// before.
void allow_attachment() noexcept;

}  // namespace pw
