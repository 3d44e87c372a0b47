// std::format for gcc 12, which has none: a thin, typed front to {fmt}, compiled once.
#pragma once

#include <string>

#include <fmt/format.h>

namespace pw {
using fmt::format;
}  // namespace pw
