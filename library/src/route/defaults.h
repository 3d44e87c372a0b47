// The costs that come with Peerway: those of a plan's methods, as `peerway tune` measured them. They decide
// until this machine has a table of its own.
#pragma once

#include <string_view>

namespace pw::route {

/// A route table's text: defaults.json beside this file, which the build puts into the library.
std::string_view default_table();

}  // namespace pw::route
