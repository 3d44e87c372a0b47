// The functions that each version's build of the transport offers to the rest.
#pragma once

#include <functional>
#include <string>

namespace pw::uct {

/// Gives a symbol of the UCX that is to be served; null when it has none.
using Find = std::function<void*(const char* name)>;

// Registers the transport with that UCX. Returns why not; empty: done.
namespace ucx_1_13 {
std::string start(const Find& find);
}
namespace ucx_1_20 {
std::string start(const Find& find);
}
namespace ucx_1_22 {
std::string start(const Find& find);
}

}  // namespace pw::uct
