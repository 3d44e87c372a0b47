// Any bytes as a rules file: parsed, or refused with PW_BAD_TABLE. What was parsed never leaves a hole.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/status.h"
#include "route/rules.h"

using namespace pw;
using namespace pw::route;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const KnownPaths paths = {{"peer/copy", "peer/store", "staged", "ucx"},
                                   {{"nic:", "NIC", "PEERWAY_NIC", "a plugin's file"}}};
  static const std::vector<Choosable> candidates = {{{"peer/copy"}}, {{"staged"}}, {{"peer/copy", "staged"}}};
  static const Case where{Op::put, ShapeClass::contiguous, {"cuda", "cuda", "nvlink", false}};
  try {
    const Rules rules = parse_rules({reinterpret_cast<const char*>(data), size}, "rules", paths);
    std::vector<std::string> notes;
    uint64_t at = 1;
    for (const Allowance& allowance : rules.apply(where, candidates, {}, notes)) {
      if (allowance.sizes.from != at || allowance.sizes.to <= at || allowance.allowed.empty()) std::abort();
      at = allowance.sizes.to;
    }
    if (at != kEnd) std::abort();
  } catch (const Error& error) {
    if (error.status() != PW_BAD_TABLE) std::abort();
  }
  return 0;
}
