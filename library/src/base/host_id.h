// An identifier that all processes of one host share.
#pragma once

#include <cstdint>
#include <string_view>

namespace pw {

/// Returns the same value in processes that share a running kernel and a process-id namespace, which can
/// watch one another and access one another's memory. `simulated` separates processes that must act as if
/// they were on different hosts.
uint64_t host_id(std::string_view simulated = {});

/// Returns the same value in processes of one host that can connect to one another's abstract Unix sockets.
uint64_t network_id();

/// Lets processes of the same user read this process's memory and copy its descriptors. Both count as
/// tracing, which Yama restricts to parents, but the ranks of a job are siblings. The kernel still checks the
/// user ids.
void allow_attachment() noexcept;

}  // namespace pw
