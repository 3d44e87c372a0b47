// Which kinds of devices UCX knows the memory of.
#pragma once

#include <cstdint>
#include <string_view>

namespace pw::ucx {

/// Returns the name that UCX gives to the memory of this kind of device ("host", "cuda", "hip").
std::string_view memory_name(std::string_view kind);

/// Returns the kinds of devices (in the order of device_kinds()) whose memory is among `memory_types`, as a
/// bit mask. `names` has UCX's name of each type; if it is null, there are none.
uint32_t kinds_among(uint64_t memory_types, const char* const* names);

}  // namespace pw::ucx
