#define FMT_HEADER_ONLY 1
#include "base/format.h"

#include <fmt/format.h>

namespace pw {

std::string vformat(fmt::string_view text, fmt::format_args arguments) {
  return fmt::vformat(text, arguments);
}

}  // namespace pw
