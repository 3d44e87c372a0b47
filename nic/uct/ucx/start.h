// The functions that the transport's build for each version offers to the other code.
#pragma once

#include <functional>
#include <string>

namespace pw::uct {

/// Returns a symbol of the UCX in question; null if it has none.
using Find = std::function<void*(const char* name)>;

// Registers the transport with that UCX. Returns why that failed; empty if it succeeded.
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
