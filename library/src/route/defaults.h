// The costs that come with Peerway: those of the methods of plans, as `peerway tune` measured them. They
// decide until this machine has a table of its own.
#pragma once

#include <string_view>

namespace pw::route {

/// The text of a route table: defaults.json beside this file, which the build embeds in the library.
std::string_view default_table();

}  // namespace pw::route
