// A replacement for std::format, which gcc 12 lacks: a typed front end to {fmt}, whose heavy part is compiled
// once, in format.cpp.
#pragma once

#include <string>
#include <utility>

#if __has_include(<fmt/base.h>)
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif

namespace pw {

std::string vformat(fmt::string_view text, fmt::format_args arguments);

template <typename... Arguments>
std::string format(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  // Newer versions deprecate the conversion that is the only one in older versions.
  if constexpr (requires { text.get(); })
    return pw::vformat(text.get(), fmt::make_format_args(arguments...));
  else
    return pw::vformat(text, fmt::make_format_args(arguments...));
}

}  // namespace pw
