// The methods by which a plan's send can reach its receive, and the choice among them. The sender chooses and
// tells its partner, so tables may differ between ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "context/context.h"
#include "peerway/peerway.h"
#include "plan/negotiation/lanes.h"

namespace pw {

/// Every method on a device of that kind, in order of preference, with why one cannot be. `reach` is that of
/// the sender.
std::vector<PathInfo> methods_of(uint8_t device_kind, LaneReach reach);

/// Converts between a LaneKind and its name in route::kPlanMethods.
LaneKind kind_of_method(std::string_view name);
const char* name_of_method(LaneKind kind, uint8_t device_kind);

/// The methods of sends from the region to the remote, for any number of bytes; and the route's decision
/// among them, explained (JSON; route/explain.h). For the Python module.
std::vector<PathInfo> methods_for(pw_context* context, const pw_remote* remote, const pw_region* region);
std::string explain_send_for(pw_context* context, const pw_remote* remote, const pw_region* region);

}  // namespace pw
