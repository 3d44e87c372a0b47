// Any bytes as a rules file: parsed, or refused with PW_BAD_TABLE. What was parsed never leaves a hole.
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "fuzz/fuzz.h"
#include "route/rules.h"

namespace pw::route {
namespace {

using fuzz::require;

}  // namespace

FUZZ(fuzz_rules) {
  static const KnownPaths paths = {{"peer/copy", "peer/store", "staged", "ucx"},
                                   {{"nic:", "NIC", "PEERWAY_NIC", "a plugin's file"}}};
  static const std::vector<Choosable> candidates = {{{"peer/copy"}}, {{"staged"}}, {{"peer/copy", "staged"}}};
  static const Case where{Op::put, ShapeClass::contiguous, {"cuda", "cuda", "nvlink", false}};
  try {
    const Rules rules = parse_rules({reinterpret_cast<const char*>(data), size}, "rules", paths);
    std::vector<std::string> notes;
    uint64_t at = 1;
    for (const Allowance& allowance : rules.apply(where, candidates, {}, notes)) {
      require(allowance.sizes.from == at && allowance.sizes.to > at && !allowance.allowed.empty());
      at = allowance.sizes.to;
    }
    require(at == kEnd);
  } catch (const Error& error) {
    require(error.status() == PW_BAD_TABLE);
  }
}

}  // namespace pw::route
