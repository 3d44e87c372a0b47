// The methods by which a plan's send can reach its receive. The sender chooses among those that are
// available, by its route table, and tells its partner; so ranks may have different tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "context/context.h"
#include "peerway/peerway.h"
#include "plan/negotiation/lanes.h"

namespace pw {

/// Returns every method on a device of that kind, in order of preference, and for each whether it is
/// available or why not. `reach` says what the sender reaches.
std::vector<NamedOffer> methods_of(uint8_t device_kind, LaneReach reach);

/// Converts between a SendMethod and its name in route::kPlanMethods.
SendMethod method_named(std::string_view name);
const char* name_of_method(SendMethod method, uint8_t device_kind);

// For the Python module: the methods of sends from the region to the remote, and the route's choice among
// them for each number of bytes, as JSON (route/explain.h).
std::vector<NamedOffer> methods_for(pw_context* context, const pw_remote* remote, const pw_region* region);
std::string explain_send_for(pw_context* context, const pw_remote* remote, const pw_region* region);

}  // namespace pw
